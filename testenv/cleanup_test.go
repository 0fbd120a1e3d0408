package testenv_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tidemark-cdc/tidemark/testenv"
)

// childMark makes TestAProcessThatIsKilled the process that is killed.
const childMark = "TIDEMARK_TESTENV_CHILD"

// TestAProcessThatIsKilled is the child of TestNothingOutlivesAKilledProcess: it starts a server, says
// where, and waits for its end.
func TestAProcessThatIsKilled(t *testing.T) {
	if os.Getenv(childMark) == "" {
		t.Skip("only as a child of TestNothingOutlivesAKilledProcess")
	}
	p, err := testenv.StartPostgres(t.Context(), testenv.PostgresOptions{})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Println("child:", p.PID(), filepath.Dir(p.DataDir))
	select {}
}

func TestNothingOutlivesAKilledProcess(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestAProcessThatIsKilled$", "-test.v")
	cmd.Env = append(os.Environ(), childMark+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var dir string
	scan := bufio.NewScanner(out)
	for pid == 0 && scan.Scan() {
		if line, found := strings.CutPrefix(scan.Text(), "child: "); found {
			if _, err := fmt.Sscan(line, &pid, &dir); err != nil {
				t.Error(err)
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if pid == 0 {
		t.Fatal("the child did not say where its server is")
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		_, statErr := os.Stat(dir)
		killErr := syscall.Kill(pid, 0)
		if errors.Is(statErr, os.ErrNotExist) && errors.Is(killErr, syscall.ESRCH) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after 30 s: directory %s: %v; process %d: %v", dir, statErr, pid, killErr)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestRemainingNamesWhatIsOpen(t *testing.T) {
	p := start(t, testenv.PostgresOptions{})
	left := strings.Join(testenv.Remaining(), "\n")
	for _, want := range []string{
		fmt.Sprintf("process postgres (pid %d)", p.PID()), "directory " + filepath.Dir(p.DataDir),
	} {
		if !strings.Contains(left, want) {
			t.Errorf("Remaining does not name %q:\n%s", want, left)
		}
	}
}

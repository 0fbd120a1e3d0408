package sim

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// minimiseRuns bounds what a failing seed costs before it is printed.
const minimiseRuns = 4000

// seeds is how many the test runs; the stage sim asks for more.
func seeds(t *testing.T) uint64 {
	n, err := strconv.ParseUint(cmp.Or(os.Getenv("TIDEMARK_SIM_SEEDS"), "500"), 10, 32)
	if err != nil {
		t.Fatal("TIDEMARK_SIM_SEEDS: ", err)
	}
	return n
}

// TestEveryInterleavingKeepsThePromise runs the seeds, and then says what came up in them: each of
// these must, or the runs show nothing.
func TestEveryInterleavingKeepsThePromise(t *testing.T) {
	began, n := time.Now(), seeds(t)
	var next, bad atomic.Uint64
	var mu sync.Mutex
	total := map[string]int{}
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			counts := map[string]int{}
			for seed := next.Add(1); seed <= n && bad.Load() == 0; seed = next.Add(1) {
				if Run(seed, "", counts) != nil {
					bad.CompareAndSwap(0, seed)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for what, k := range counts {
				total[what] += k
			}
		})
	}
	workers.Wait()
	if seed := bad.Load(); seed != 0 {
		t.Fatal(Minimise(seed, "", minimiseRuns))
	}
	for _, what := range []string{
		"sessions", "kills", "freezes", "crashes of the server", "idle positions", "waits for the slot",
		"second looks that differ", "source transactions split", "starts within a split transaction",
		"stops with fenced", "stops with slot_missing", "stops with slot_lost",
		"stops with slot_ahead_of_offset", "stops with publication_changed",
	} {
		if total[what] == 0 {
			t.Errorf("no run had any: %s", what)
		}
	}
	var text strings.Builder
	for _, what := range slices.Sorted(maps.Keys(total)) {
		fmt.Fprintf(&text, "\n%9d %s", total[what], what)
	}
	t.Logf("seeds 1 to %d in %s%s", n, time.Since(began).Round(time.Second/10), text.String())
}

// TestOneSeed runs the seed that a failure named.
func TestOneSeed(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv("TIDEMARK_SIM_SEED"), 10, 64)
	if err != nil {
		t.Skip("TIDEMARK_SIM_SEED names no seed")
	}
	m := Mutation(os.Getenv("TIDEMARK_SIM_MUTATION"))
	if f := Minimise(seed, m, minimiseRuns); f != nil {
		t.Fatal(f)
	}
}

// TestMutationsAreCaught: a simulator that finds nothing in a broken driver shows nothing about one
// that is whole.
func TestMutationsAreCaught(t *testing.T) {
	for m, checks := range map[Mutation][]string{
		StoreBeforeConfirm: {CheckCovered},
		AcknowledgeEarly:   {CheckTold},
		K2Removed:          {CheckCovered, CheckUnjust},
		K3Removed:          {CheckCovered, CheckUnjust},
		FenceRemoved:       {CheckBackwards, CheckTwice},
		SecondLookRemoved:  {CheckBackwards, CheckTwice},
		ReadBeforeFence:    {CheckBackwards, CheckTwice},
		IndexOffByOne:      {CheckTwice, CheckUnjust},
		Drop:               {CheckCovered, CheckOrder},
		Swap:               {CheckCovered, CheckOrder, CheckRepeat, CheckTwice},
		SkipOnRestart:      {CheckCovered, CheckOrder},
		GapIgnored:         {CheckCovered, CheckLoss, CheckOrder},
		PublicationIgnored: {CheckHole},
		IdleRemoved:        {CheckStuck},
	} {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			for seed := uint64(1); seed <= 4000; seed++ {
				f := Run(seed, m, map[string]int{})
				if f == nil {
					continue
				}
				if !slices.Contains(checks, f.Violation.Check) {
					t.Fatal(Minimise(seed, m, minimiseRuns))
				}
				t.Logf("%s: seed %d: %s: %s", m, seed, f.Violation.Check, f.Violation.Text)
				return
			}
			t.Error("no check finds it in 4000 seeds")
		})
	}
}

func TestASeedIsARun(t *testing.T) {
	for seed := uint64(1); seed <= 20; seed++ {
		a, b := map[string]int{}, map[string]int{}
		if x, y := Run(seed, Drop, a), Run(seed, Drop, b); !reflect.DeepEqual(x, y) ||
			!reflect.DeepEqual(a, b) {
			t.Errorf("seed %d: two runs differ: %v, %v", seed, x, y)
		}
	}
}

func TestAFailureIsMadeSmall(t *testing.T) {
	seed := uint64(1)
	for Run(seed, Drop, map[string]int{}) == nil {
		seed++
	}
	f := Minimise(seed, Drop, minimiseRuns)
	if f == nil || f.Choices*4 > f.Drawn {
		t.Fatalf("not small: %v", f)
	}
	text := f.String()
	for _, want := range []string{
		"VIOLATION " + f.Violation.Check, "transaction", "slot made at",
		fmt.Sprintf("TIDEMARK_SIM_SEED=%d TIDEMARK_SIM_MUTATION='drop' go test", seed),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/tidemark-cdc/tidemark/testenv"
	"github.com/tidemark-cdc/tidemark/testenv/proof"
)

// startTidemark starts the program as a user does, from its file.
func (b *bench) startTidemark(ctx context.Context, j job) (*testenv.Program, error) {
	if b.binary == "" {
		var err error
		if b.binary, err = proof.Build(ctx, b.dir); err != nil {
			return nil, err
		}
	}
	file, err := j.settings()
	if err != nil {
		return nil, err
	}
	if j.Slot != "" {
		if err := j.storePosition(ctx, file); err != nil {
			return nil, err
		}
	}
	worker, keys := j.keys()
	text, err := json.Marshal(map[string]any{
		"worker": worker, "connectors": map[string]any{j.Connector: keys},
	})
	if err != nil {
		return nil, err
	}
	return testenv.StartProgram("tidemark", func(dir string) (*exec.Cmd, error) {
		path := filepath.Join(dir, "tidemark.json")
		return exec.Command(b.binary, "run", "-c", path), os.WriteFile(path, text, 0o600)
	})
}

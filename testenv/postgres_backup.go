package testenv

import (
	"os"
	"path/filepath"
)

// SaveData keeps a copy of the data directory of a server that is stopped.
func (p *Postgres) SaveData() error {
	return copyTree(p.DataDir, p.saved(), serverUser(), nil)
}

// RestoreData puts the copy that SaveData kept in the data directory's place. The server is stopped.
func (p *Postgres) RestoreData() error {
	if err := os.RemoveAll(p.DataDir); err != nil {
		return err
	}
	return os.Rename(p.saved(), p.DataDir)
}

func (p *Postgres) saved() string { return filepath.Join(p.dir, "saved") }

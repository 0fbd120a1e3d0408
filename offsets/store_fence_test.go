package offsets

import (
	"errors"
	"testing"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

func TestStoreSaveNeedsAFence(t *testing.T) {
	s := openStore(t, newCluster(t))
	if err := s.Save(t.Context(), position(10)); !errors.Is(err, ErrNotFenced) {
		t.Fatalf("%v", err)
	}
	wantLoad(t, s, 0)
}

func TestStoreFencedWriterNeverOverwrites(t *testing.T) {
	c := newCluster(t)
	first := fenced(t, c)
	mustSave(t, first, position(10))
	second := fenced(t, c) // the first is frozen; a second takes over
	wantLoad(t, second, 10)
	mustSave(t, second, position(30))
	err := first.Save(t.Context(), position(20)) // it wakes up
	if !errors.Is(err, ErrFenced) || fault.CodeOf(err) != fault.Fenced {
		t.Fatalf("%v", err)
	}
	wantLoad(t, second, 30)
	if err := first.Save(t.Context(), position(21)); !errors.Is(err, ErrNotFenced) {
		t.Fatalf("a fenced store went on: %v", err)
	}
	mustSave(t, second, position(40)) // and was not fenced by the first one's recovery
	wantLoad(t, second, 40)
}

func TestStoreFencedBeforeItsFirstSave(t *testing.T) {
	c := newCluster(t)
	first := fenced(t, c)
	second := fenced(t, c)
	if err := first.Save(t.Context(), position(20)); !errors.Is(err, ErrFenced) {
		t.Fatalf("%v", err)
	}
	mustSave(t, second, position(30))
	wantLoad(t, second, 30)
}

// What an earlier process had written in a transaction that it did not end is aborted by the fence.
func TestStoreFenceAbortsAnOpenTransaction(t *testing.T) {
	c := newCluster(t)
	mustSave(t, fenced(t, c), position(10))
	openTransaction(t, c, TransactionalID("shop"), shopKey, shopValue)
	second := fenced(t, c)
	wantLoad(t, second, 10)
}

// Own transaction timed out, or the same process fences again: it goes on.
func TestStoreFencesAgain(t *testing.T) {
	c := newCluster(t)
	s := fenced(t, c)
	mustSave(t, s, position(10))
	fenced(t, c)
	if err := s.Save(t.Context(), position(20)); !errors.Is(err, ErrFenced) {
		t.Fatalf("%v", err)
	}
	if err := s.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantLoad(t, s, 10)
	mustSave(t, s, position(20))
	wantLoad(t, s, 20)
}

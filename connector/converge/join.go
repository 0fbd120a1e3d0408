package converge

import (
	"context"
	"errors"

	"github.com/tidemark-cdc/tidemark/internal/fault"
)

// entryOverhead is what a key costs in a map beside its bytes; measured roughly, rounded up.
const entryOverhead = 96

// errTooLarge ends the loading of a pair of files that does not fit.
var errTooLarge = errors.New("too large")

// join compares two spills, file by file.
func (j *Join) join(
	ctx context.Context, level int, table, topic *spill, fn func(key []byte) error,
) error {
	for i := range table.files {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := pair{j: j, fn: fn}
		err := p.load(table.files[i], topic.files[i])
		if err == nil {
			err = p.gone()
		} else if errors.Is(err, errTooLarge) {
			p = pair{} // not beside what the parts take
			err = j.split(ctx, level+1, table.files[i], topic.files[i], fn)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// split joins a pair of files that is too large by parts.
func (j *Join) split(
	ctx context.Context, level int, table, topic *spillFile, fn func(key []byte) error,
) error {
	if level == maxLevels {
		return fault.New(fault.Internal, "the keys of a repair do not part into files")
	}
	j.splits++
	a, err := newSpill(j.o.Dir, j.seed[level], refanout)
	if err != nil {
		return err
	}
	defer a.close()
	b, err := newSpill(j.o.Dir, j.seed[level], refanout)
	if err != nil {
		return err
	}
	defer b.close()
	err = table.read(func(entry []byte) error { return a.write(entry, entry) })
	if err != nil {
		return err
	}
	err = topic.read(func(entry []byte) error {
		return b.write(parseTopicEntry(entry).key[keyHead:], entry)
	})
	if err != nil {
		return err
	}
	return j.join(ctx, level, a, b, fn)
}

// pair is two files in memory: what the table has, and what the topic says last of each other key.
type pair struct {
	j     *Join
	fn    func(key []byte) error
	size  int64
	table map[string]struct{}
	last  map[partitionKey]bool // live
}

type partitionKey struct {
	partition int32
	key       string
}

func (p *pair) grow(key []byte) error {
	if p.size += int64(len(key)) + entryOverhead; p.size > p.j.o.MaxMemory {
		return errTooLarge
	}
	return nil
}

func (p *pair) load(table, topic *spillFile) error {
	p.table, p.last = map[string]struct{}{}, map[partitionKey]bool{}
	err := table.read(func(body []byte) error {
		if _, known := p.table[string(body)]; known {
			return nil
		}
		p.table[string(body)] = struct{}{}
		return p.grow(body)
	})
	if err != nil {
		return err
	}
	return topic.read(func(entry []byte) error {
		k := parseTopicEntry(entry)
		if k.offset <= p.j.parts[k.partition].cleared {
			return nil
		}
		if k.same {
			if _, there := p.table[string(k.key[keyHead:])]; there {
				return nil
			}
		}
		at := partitionKey{k.partition, string(k.key)}
		if _, known := p.last[at]; !known {
			if err := p.grow(k.key); err != nil {
				return err
			}
		}
		p.last[at] = k.live
		return nil
	})
}

// gone hands on each key that is live on some partition, once.
func (p *pair) gone() error {
	told := map[string]bool{}
	for at, live := range p.last {
		if !live || told[at.key] {
			continue
		}
		told[at.key] = true
		if err := p.fn([]byte(at.key)); err != nil {
			return err
		}
	}
	return nil
}

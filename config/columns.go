package config

import (
	"cmp"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha3"
	"crypto/sha512"
	"hash"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Columns says what becomes of columns: the expressions are matched with "schema.table.column".
type Columns struct {
	Include, Exclude []*regexp.Regexp
	Masks            []ColumnMask // the one that shows least first
}

// ColumnMask is one of the keys column.mask.* and column.truncate.*.
type ColumnMask struct {
	Key     string // as it may be shown: **** in place of a salt
	Columns []*regexp.Regexp
	// Stars replaces by Length asterisks; Hash, where it is not nil, by a hash with Salt, Java
	// being version 1; else Length characters stay.
	Stars  bool
	Length int
	Hash   func() hash.Hash
	Salt   Secret
	Java   bool
}

// IsZero reports whether every column is sent as it is.
func (c *Columns) IsZero() bool {
	return len(c.Include) == 0 && len(c.Exclude) == 0 && len(c.Masks) == 0
}

// Rule says of a column whether it is sent, and which mask is put on it, nil for none. key is the
// configuration's key that says so.
func (c *Columns) Rule(schema, table, column string) (sent bool, mask *ColumnMask, key string) {
	name := schema + "." + table + "." + column
	switch {
	case matchesAny(c.Exclude, name):
		return false, nil, "column.exclude.list"
	case len(c.Include) > 0 && !matchesAny(c.Include, name):
		return false, nil, "column.include.list"
	}
	for i := range c.Masks {
		if matchesAny(c.Masks[i].Columns, name) {
			return true, &c.Masks[i], c.Masks[i].Key
		}
	}
	return true, nil, ""
}

// Unmatched returns the expressions that match none of the columns, each as schema.table.column,
// with the key that each stands in.
func (c *Columns) Unmatched(columns []string) (entries [][2]string) {
	look := func(key string, list []*regexp.Regexp) {
		for _, re := range list {
			if !slices.ContainsFunc(columns, re.MatchString) {
				entries = append(entries, [2]string{key, sourceOf(re)})
			}
		}
	}
	look("column.include.list", c.Include)
	look("column.exclude.list", c.Exclude)
	for i := range c.Masks {
		look(c.Masks[i].Key, c.Masks[i].Columns)
	}
	return entries
}

// Java's names of hashes, as Debezium hands them to MessageDigest. MD5 and SHA-1 are here because
// topics hold such hashes.
var hashes = map[string]func() hash.Hash{
	"MD5": md5.New, "SHA-1": sha1.New, "SHA": sha1.New,
	"SHA-224": sha256.New224, "SHA-256": sha256.New,
	"SHA-384": sha512.New384, "SHA-512": sha512.New,
	"SHA-512/224": sha512.New512_224, "SHA-512/256": sha512.New512_256,
	"SHA3-224": func() hash.Hash { return sha3.New224() },
	"SHA3-256": func() hash.Hash { return sha3.New256() },
	"SHA3-384": func() hash.Hash { return sha3.New384() },
	"SHA3-512": func() hash.Hash { return sha3.New512() },
}

const hashPrefix = "column.mask.hash."

var (
	hashKey   = regexp.MustCompile(`^(column\.mask\.hash\.(v2\.)?([^.]+)\.with\.salt\.)(.+)$`)
	lengthKey = regexp.MustCompile(`^column\.(mask\.with|truncate\.to)\.(.+)\.chars$`)
	// saltKey also knows a key in which something between hash and salt is misspelt.
	saltKey = regexp.MustCompile(
		`(?i)(column\.mask\.hash(?:\.v2)?\.[^.]+(?:\.with)?(?:\.salt)?\.).+`)
)

// withoutSalt is a key as it may be shown.
func withoutSalt(key string) string { return saltKey.ReplaceAllString(key, "$1****") }

// columns reads the keys that leave columns out and change them.
func (s *section) columns() Columns {
	c := Columns{
		Include: s.regexes("column.include.list"),
		Exclude: s.regexes("column.exclude.list"),
	}
	for _, name := range slices.Sorted(maps.Keys(s.values)) {
		k, _ := lookup(name, s.scope)
		if !strings.HasPrefix(k.Name, "column.") || !strings.Contains(k.Name, "*") {
			continue
		}
		if m, ok := s.mask(name); ok {
			c.Masks = append(c.Masks, m)
		}
	}
	slices.SortStableFunc(c.Masks, func(a, b ColumnMask) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Length, b.Length))
	})
	return c
}

// rank orders masks by how little they show.
func (m *ColumnMask) rank() int {
	switch {
	case m.Stars:
		return 0
	case m.Hash != nil && !m.Java:
		return 1
	case m.Hash != nil:
		return 2
	}
	return 3
}

// mask reads a key whose name says what it does.
func (s *section) mask(name string) (m ColumnMask, ok bool) {
	v := s.values[name]
	m.Key, m.Columns = withoutSalt(name), s.regexes(name)
	if parts := lengthKey.FindStringSubmatch(name); parts != nil {
		m.Stars = parts[1] == "mask.with"
		least := 1
		if m.Stars {
			least = 0
		}
		n, err := strconv.Atoi(parts[2])
		if err != nil || n < least || n > maxMaskLength {
			s.violate(name, v.line, show(parts[2]), "a number of characters from "+
				strconv.Itoa(least)+" to "+strconv.Itoa(maxMaskLength), "")
			return m, false
		}
		m.Length = n
		return m, true
	}
	parts := hashKey.FindStringSubmatch(v.name)
	if parts == nil {
		s.violate(name, v.line, "", "column.mask.hash.v2.ALGORITHM.with.salt.SALT", "")
		return m, false
	}
	m.Hash, m.Java, m.Salt = hashes[strings.ToUpper(parts[3])], parts[2] == "", NewSecret(parts[4])
	if m.Hash == nil {
		s.violate(name, v.line, show(parts[3]), "a hash: "+
			oneOf(slices.Sorted(maps.Keys(hashes))), "")
		return m, false
	}
	if v.name == name && s.file != "" {
		s.warn(name, v.line, "the salt stands in the file: write ${env:NAME} or ${file:PATH:KEY} "+
			"in its place")
	}
	return m, true
}

// maxMaskLength bounds what the number of a key may ask for: a value's worth of asterisks.
const maxMaskLength = 1 << 20

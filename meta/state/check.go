package state

import (
	"fmt"
	"strconv"
	"strings"

	"rankfs/meta"
)

const noID = "0000000000000000"

const maxText = 256 // bytes of a host, an address, a fingerprint, a policy

// checkID returns an error unless s can be a node's id. All zeros stand for no node.
func checkID(s string) error {
	if len(s) != 16 || !isHex(s) || s == noID {
		return fmt.Errorf("node id %q %w: use 16 lower-case hexadecimal digits, not all zero", s, meta.ErrInvalid)
	}
	return nil
}

// idNumber is a checked id as a number, the form of large tables.
func idNumber(id string) uint64 {
	n, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		panic("state: unchecked node id " + id)
	}
	return n
}

func idString(n uint64) string { return fmt.Sprintf("%016x", n) }

// checkHash reports whether s can be a hash of 64 to 512 bits.
func checkHash(what, s string) error {
	if len(s) < 16 || len(s) > 128 || len(s)%2 != 0 || !isHex(s) {
		return fmt.Errorf("%s %q %w: use 16 to 128 lower-case hexadecimal digits", what, shorten(s), meta.ErrInvalid)
	}
	return nil
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// checkText reports whether s is 1 to most printable characters, without
// blanks, as all names of machines and algorithms are.
func checkText(what, s string, most int) error {
	bad := func(r rune) bool { return r <= ' ' || r > '~' }
	if s == "" || len(s) > most || strings.ContainsFunc(s, bad) {
		return fmt.Errorf("%s %q %w: use 1 to %d printable characters of ASCII", what, shorten(s), meta.ErrInvalid, most)
	}
	return nil
}

// shorten keeps the error about an endless name short.
func shorten(s string) string {
	if len(s) > maxText {
		return s[:maxText] + "..."
	}
	return s
}

// checkView parses the name of a view that spells out every option, the one
// name of it that is used as a key.
func checkView(name string) (meta.View, error) {
	dataset, options, _ := meta.SplitView(name)
	if len(name) > 2*maxText {
		return meta.View{}, fmt.Errorf("view %q %w: too long", shorten(name), meta.ErrInvalid)
	}
	if err := meta.CheckName(dataset); err != nil {
		return meta.View{}, err
	}
	v, err := meta.View{Dataset: dataset}.With(options)
	if err == nil && v.String() != name {
		err = fmt.Errorf("%w: spell it %s", meta.ErrInvalid, v)
	}
	if err != nil {
		return meta.View{}, fmt.Errorf("view %q: %w", name, err)
	}
	return v, nil
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// maxNamed bounds the operators that an error refers its reader to.
const maxNamed = 3

// inUse refuses to remove what datasets are made of.
func inUse(what string, made []string) error {
	if len(made) == 0 {
		return nil
	}
	more, verb := "", "is"
	if len(made) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(made)-maxNamed)
	}
	if len(made) > 1 {
		verb = "are"
	}
	return meta.Worded(meta.ErrBusy, "%s is in use: %s%s %s made of it; remove that first: rankfs dataset rm %s",
		what, strings.Join(made[:min(len(made), maxNamed)], ", "), more, verb, made[0])
}

// must is an error unless all is as it must be.
func must(ok bool, err error) error {
	if ok {
		return nil
	}
	return err
}

package record

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"rankfs/meta"
)

const sampleKey = 64

// prefix is a number that rises with the order of keys, or stays: most keys are told apart
// by it, without a look at their bytes.
func (s *Spec) prefix(key []byte) uint64 {
	if len(key) >= 8 && s.Order != meta.ByNumber {
		return binary.BigEndian.Uint64(key)
	}
	return s.slowPrefix(key)
}

func (s *Spec) slowPrefix(key []byte) uint64 {
	if s.Order == meta.ByNumber {
		return parseNumber(key).prefix()
	}
	var b [8]byte
	copy(b[:], key)
	return binary.BigEndian.Uint64(b[:])
}

// compare is the order of keys whose prefixes are equal. Keys of one number are in the order
// of their bytes, so that equal ones stand together.
func (s *Spec) compare(a, b []byte) int {
	if s.Order == meta.ByNumber {
		if c := parseNumber(a).compare(parseNumber(b)); c != 0 {
			return c
		}
	}
	return bytes.Compare(a, b)
}

// order is the order of all keys.
func (s *Spec) order(a, b []byte) int {
	return cmp.Or(cmp.Compare(s.prefix(a), s.prefix(b)), s.compare(a, b))
}

// valid reports why a record can have no place in the order.
func (s *Spec) valid(key []byte) error {
	if s.Order != meta.ByNumber {
		return nil
	}
	return s.validNumber(key)
}

func (s *Spec) validNumber(key []byte) error {
	if s.Ranges && len(key) > sampleKey {
		return meta.Worded(errBad, "key %q goes on to %d bytes, and with by=range sort=key:number it has at most %d", clip(key), len(key), sampleKey)
	}
	if !isNumber(key) {
		return meta.Worded(errBad, "key %q is no number, and the spec has sort=key:number", clip(key))
	}
	return nil
}

func clip(b []byte) []byte { return b[:min(len(b), 64)] }

// A number is a decimal number as text: its digits before the point without zeros in front,
// and those after it without zeros at the end. It is compared exactly, however long it is.
type number struct {
	negative bool
	integer  []byte
	fraction []byte
}

// isNumber reports whether a text is an optional sign, digits, and maybe a point and more.
func isNumber(b []byte) bool {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		b = b[1:]
	}
	integer, fraction, _ := bytes.Cut(b, []byte("."))
	return len(integer)+len(fraction) > 0 && allDigits(integer) && allDigits(fraction)
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

func parseNumber(b []byte) (n number) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		n.negative, b = b[0] == '-', b[1:]
	}
	n.integer, n.fraction, _ = bytes.Cut(b, []byte("."))
	n.integer = bytes.TrimLeft(n.integer, "0")
	n.fraction = bytes.TrimRight(n.fraction, "0")
	if len(n.integer)+len(n.fraction) == 0 {
		n.negative = false
	}
	return n
}

// The prefix of a number: its sign, how many digits it has before the point, and the first
// of all its digits.
const (
	prefixDigits = 14 // fewer than 2^47 values
	countShift   = 48
	maxCounted   = 1<<15 - 1
)

func (n number) prefix() uint64 {
	value, digits := uint64(0), prefixDigits
	if len(n.integer) >= maxCounted {
		digits = 0 // those of a longer one say nothing of which is greater
	}
	for i := range digits {
		digit := byte('0')
		switch {
		case i < len(n.integer):
			digit = n.integer[i]
		case i-len(n.integer) < len(n.fraction):
			digit = n.fraction[i-len(n.integer)]
		}
		value = 10*value + uint64(digit-'0')
	}
	p := 1<<63 | uint64(min(len(n.integer), maxCounted))<<countShift | value
	if n.negative {
		return ^p
	}
	return p
}

func (n number) compare(other number) int {
	if n.negative != other.negative {
		if n.negative {
			return -1
		}
		return 1
	}
	c := cmp.Or(cmp.Compare(len(n.integer), len(other.integer)), bytes.Compare(n.integer, other.integer), bytes.Compare(n.fraction, other.fraction))
	if n.negative {
		return -c
	}
	return c
}

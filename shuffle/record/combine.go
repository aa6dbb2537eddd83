package record

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A combiner takes the records of a part in their order, and puts one for each key.
type combiner struct {
	Spec
	merges bool // what it takes was combined before
	out    *output

	some  bool
	key   []byte // of the records that were taken last
	first []byte // of them
	value int64

	text [20]byte // of a number
}

// take takes the next record, which has that key.
func (c *combiner) take(r, key []byte) (err error) {
	if c.Combine == meta.NotCombined {
		c.putAsIs(r, key)
		return nil
	}
	value := int64(0)
	if c.merges && c.Combine == meta.Count {
		value, err = c.valueOf(r)
	} else {
		value, err = c.worth(r)
	}
	switch {
	case err != nil:
	case c.some && bytes.Equal(key, c.key):
		joined := false
		if c.value, joined = c.join(c.value, value); !joined {
			err = beyond(key)
		}
	default:
		c.begin(r, key, value)
	}
	return err
}

// begin begins with a key of which that is the first record, and what it has come to so far.
func (c *combiner) begin(r, key []byte, value int64) {
	c.end()
	c.some, c.key, c.first, c.value = true, key, r, value
}

// worth is the number that a record which was not combined yet adds to its key.
func (s *Spec) worth(r []byte) (int64, error) {
	switch s.Combine {
	case meta.First:
		return 0, nil
	case meta.Count:
		return 1, nil
	}
	return s.valueOf(r)
}

// join combines two values of a key, if the result is a number of 64 bits.
func (s *Spec) join(a, b int64) (sum int64, ok bool) {
	switch s.Combine {
	case meta.Sum, meta.Count:
		sum = a + b
		return sum, b == 0 || (b > 0) == (sum > a)
	case meta.Least:
		return min(a, b), true
	case meta.Greatest:
		return max(a, b), true
	}
	return a, true
}

func beyond(key []byte) error {
	return fmt.Errorf("the sum for key %q is beyond the numbers of 64 bits: %w", clip(key), unix.EOVERFLOW)
}

// end puts what the last key has come to.
func (c *combiner) end() {
	switch {
	case !c.some:
	case c.Combine == meta.First:
		c.putAsIs(c.first, c.key)
	default:
		c.out.put(c.key, c.key, []byte{c.Sep}, strconv.AppendInt(c.text[:0], c.value, 10), newline)
	}
	c.some = false
}

var newline = []byte("\n")

// putAsIs puts a record as it is; a last line without a newline is given one.
func (c *combiner) putAsIs(r, key []byte) {
	c.out.begin(key)
	c.out.add(r)
	if !c.ended(r) {
		c.out.add(newline)
	}
}

// valueOf is field 2 of a record as a number.
func (s *Spec) valueOf(r []byte) (int64, error) {
	text := field(s.payload(r), s.Sep, 2)
	n, ok := parseInt(text)
	if !ok {
		return 0, meta.Worded(errBad, "field 2 is %q, and not a whole number of 64 bits", clip(text))
	}
	return n, nil
}

// parseInt reads a whole number without an allocation.
func parseInt(b []byte) (n int64, ok bool) {
	negative := len(b) > 0 && b[0] == '-'
	if negative || len(b) > 0 && b[0] == '+' {
		b = b[1:]
	}
	if len(b) == 0 || !allDigits(b) {
		return 0, false
	}
	for _, c := range b { // below zero, of which there is one more
		digit := int64(c - '0')
		if n < (math.MinInt64+digit)/10 {
			return 0, false
		}
		n = 10*n - digit
	}
	if negative {
		return n, true
	}
	return -n, n != math.MinInt64
}

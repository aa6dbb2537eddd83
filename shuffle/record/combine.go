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
	row   row    // the first of them
	value int64

	text [20]byte // of a number
}

// take takes the next record, which has that key.
func (c *combiner) take(r row, key []byte) (err error) {
	if c.Combine == meta.NotCombined {
		c.putRow(r, key)
		return nil
	}
	value := int64(0)
	switch {
	case c.Combine == meta.First:
	case c.Combine == meta.Count && !c.merges:
		value = 1
	default:
		if value, err = c.valueOf(r); err != nil {
			return err
		}
	}
	if !c.some || !bytes.Equal(key, c.key) {
		c.end()
		c.some, c.key, c.row, c.value = true, key, r, value
		return nil
	}
	return c.add(value)
}

func (c *combiner) add(value int64) error {
	switch c.Combine {
	case meta.Sum, meta.Count:
		sum := c.value + value
		if (value > 0) != (sum > c.value) && value != 0 {
			return fmt.Errorf("the sum for key %q is beyond the numbers of 64 bits: %w", clip(c.key), unix.EOVERFLOW)
		}
		c.value = sum
	case meta.Least:
		c.value = min(c.value, value)
	case meta.Greatest:
		c.value = max(c.value, value)
	}
	return nil
}

// end puts what the last key has come to.
func (c *combiner) end() {
	switch {
	case !c.some:
	case c.Combine == meta.First:
		c.putRow(c.row, c.key)
	default:
		c.out.put(c.key, c.key, []byte{c.Sep}, strconv.AppendInt(c.text[:0], c.value, 10), newline)
	}
	c.some = false
}

var newline = []byte("\n")

// putRow puts a record as it is; a last line without a newline is given one.
func (c *combiner) putRow(r row, key []byte) {
	if c.Kind == meta.Lines && len(r.whole) == len(r.payload) {
		c.out.put(key, r.payload, newline)
		return
	}
	c.out.put(key, r.whole)
}

// valueOf is field 2 of a record as a number.
func (c *combiner) valueOf(r row) (int64, error) {
	text := field(r.payload, c.Sep, 2)
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

package meta

import (
	"fmt"
	"strconv"
	"strings"
)

// Bounds of what a spec says of records.
const (
	maxFixed = 1 << 30 // bytes of a record of fixed size
	maxField = 1 << 20
	maxByte  = 1 << 30
)

// A RecordKind says where the records of a map end.
type RecordKind uint8

// The kinds of records. Of NoRecords the pool knows nothing: their maps are divided by the
// programs that write them, and kept as they are.
const (
	NoRecords RecordKind = iota
	Lines                // each ends at a newline
	Fixed                // all have one size
	Sized                // before each stands its size, in 4 bytes, little-endian
)

// A RecordOrder is the order of the records of a part.
type RecordOrder uint8

// The orders of records.
const (
	AsWritten RecordOrder = iota // that of maps, and of records in them
	ByKey                        // that of the bytes of their keys
	ByNumber                     // that of the numbers that are their keys
)

// A Combining makes one record of all that have one key.
type Combining uint8

// What the one record has.
const (
	NotCombined Combining = iota
	Sum                   // of field 2
	Least
	Greatest
	Count // of records
	First // record
)

// Records say what the pool knows of the records of a stage's maps. Those of the zero value
// it does not know.
type Records struct {
	Kind    RecordKind
	Size    uint32 // of each, if they are Fixed
	Key     RecordKey
	Sep     byte // at which fields end
	Ranges  bool // a part has a range of keys, and not those of some hashes
	Order   RecordOrder
	Combine Combining
}

// A RecordKey is a part of a record: a field; or bytes, counted from one and both included;
// or if all is zero the whole.
type RecordKey struct {
	Field    uint32
	From, To uint32
}

const defaultSep = '\t'

var (
	orders     = map[RecordOrder]string{AsWritten: "none", ByKey: "key", ByNumber: "key:number"}
	combinings = map[Combining]string{NotCombined: "none", Sum: "sum", Least: "min", Greatest: "max", Count: "count", First: "first"}
)

// set takes a value of a spec, and reports whether the key is one of records.
func (r *Records) set(key, value string) (known bool, err error) {
	switch key {
	case "record":
		err = r.setKind(value)
	case "key":
		r.Key, err = parseKey(value)
	case "sep":
		r.Sep, err = parseSep(value)
	case "by":
		if value != "hash" && value != "range" {
			return true, fmt.Errorf("by=%s in spec %w: there are by=hash and by=range", clip(value), ErrInvalid)
		}
		r.Ranges = value == "range"
	case "sort":
		err = choose(&r.Order, orders, key, value)
	case "combine":
		err = choose(&r.Combine, combinings, key, value)
	default:
		return false, nil
	}
	return true, err
}

func choose[K ~uint8](is *K, names map[K]string, key, value string) error {
	var all []string
	for k := range K(len(names)) {
		if names[k] == value {
			*is = k
			return nil
		}
		all = append(all, key+"="+names[k])
	}
	return fmt.Errorf("%s=%s in spec %w: there are %s", key, clip(value), ErrInvalid, strings.Join(all, ", "))
}

func (r *Records) setKind(value string) error {
	size, fixed := strings.CutPrefix(value, "fixed:")
	switch {
	case value == "line":
		r.Kind = Lines
	case value == "sizes":
		r.Kind = Sized
	case fixed:
		n, err := strconv.ParseUint(size, 10, 32)
		if err != nil || n < 1 || n > maxFixed {
			return fmt.Errorf("record=%s in spec %w: write record=fixed:BYTES, of 1 to %d bytes", clip(value), ErrInvalid, maxFixed)
		}
		r.Kind, r.Size = Fixed, uint32(n)
	default:
		return fmt.Errorf("record=%s in spec %w: there are record=line, record=fixed:BYTES and record=sizes", clip(value), ErrInvalid)
	}
	return nil
}

func parseKey(value string) (k RecordKey, err error) {
	from, to, ranged := strings.Cut(value, "-")
	if !ranged {
		n, err := strconv.ParseUint(value, 10, 32)
		if err != nil || n > maxField {
			return k, fmt.Errorf("key=%s in spec %w: write the number of a field, %d at most, 0 for the whole record, or a range of bytes as 1-10", clip(value), ErrInvalid, maxField)
		}
		return RecordKey{Field: uint32(n)}, nil
	}
	first, err1 := strconv.ParseUint(from, 10, 32)
	last, err2 := strconv.ParseUint(to, 10, 32)
	if err1 != nil || err2 != nil || first < 1 || last < first || last > maxByte {
		return k, fmt.Errorf("key=%s in spec %w: a range of bytes is counted from 1, both ends included, as 1-10, and ends at %d at most", clip(value), ErrInvalid, maxByte)
	}
	return RecordKey{From: uint32(first), To: uint32(last)}, nil
}

const spaceSep = "space"

func parseSep(value string) (byte, error) {
	switch {
	case value == spaceSep:
		return ' ', nil
	case len(value) != 1 || value[0] <= ' ' || value[0] > '~':
		return 0, fmt.Errorf("sep=%s in spec %w: write one character of ASCII, as in sep=, or sep=space; without it fields end at tabs", clip(value), ErrInvalid)
	}
	return value[0], nil
}

// complete checks what a spec says of records as a whole, which has said these keys, and
// fills in what it leaves out.
func (r *Records) complete(said map[string]bool) error {
	if r.Kind == NoRecords {
		for _, key := range []string{"key", "sep", "by", "sort", "combine"} {
			if said[key] {
				return Worded(ErrInvalid, "%s= in spec is of no use without record=: say what the records are, as in record=line", key)
			}
		}
		return nil
	}
	if r.Sep == 0 {
		r.Sep = defaultSep
	}
	if by := r.sortedBy(); by != "" && r.Order == AsWritten {
		if said["sort"] {
			return fmt.Errorf("%s sort=none in spec %w: records are sorted for that; write sort=key, or leave it out", by, ErrInvalid)
		}
		r.Order = ByKey
	}
	if r.Combine == NotCombined || r.Combine == First {
		return nil
	}
	if r.Kind != Lines || r.Key != (RecordKey{Field: 1}) {
		return fmt.Errorf("combine=%s in spec %w: it makes lines of a key, a separator and a number, so it needs record=line key=1", combinings[r.Combine], ErrInvalid)
	}
	if r.Sep == '-' || r.Sep >= '0' && r.Sep <= '9' {
		return fmt.Errorf("combine=%s sep=%c in spec %w: it makes lines of a key, a separator and a number, in which that may stand itself", combinings[r.Combine], r.Sep, ErrInvalid)
	}
	return nil
}

// sortedBy is the part of a spec for which records have to be sorted, if any.
func (r *Records) sortedBy() string {
	switch {
	case r.Combine != NotCombined:
		return "combine=" + combinings[r.Combine]
	case r.Ranges:
		return "by=range"
	}
	return ""
}

// String is the text that is equal for equal records, with a space before each value.
func (r Records) String() string {
	var b strings.Builder
	switch r.Kind {
	case NoRecords:
		return ""
	case Lines:
		b.WriteString(" record=line")
	case Fixed:
		fmt.Fprintf(&b, " record=fixed:%d", r.Size)
	case Sized:
		b.WriteString(" record=sizes")
	}
	switch {
	case r.Key.From > 0:
		fmt.Fprintf(&b, " key=%d-%d", r.Key.From, r.Key.To)
	case r.Key.Field > 0:
		fmt.Fprintf(&b, " key=%d", r.Key.Field)
	}
	switch r.Sep {
	case defaultSep:
	case ' ':
		b.WriteString(" sep=" + spaceSep)
	default:
		b.WriteString(" sep=" + string([]byte{r.Sep}))
	}
	if r.Ranges {
		b.WriteString(" by=range")
	}
	if r.Order != AsWritten {
		b.WriteString(" sort=" + orders[r.Order])
	}
	if r.Combine != NotCombined {
		b.WriteString(" combine=" + combinings[r.Combine])
	}
	return b.String()
}

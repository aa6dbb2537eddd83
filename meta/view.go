package meta

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An OrderKind says how far a record may move from where the source has it.
type OrderKind uint8

const (
	OrderNone   OrderKind = iota // the source's own order
	OrderWindow                  // shuffled, holding a bounded number of records
	OrderFull                    // a permutation of the whole dataset
)

// An Order is the rule that turns a position of the epoch into a record.
type Order struct {
	Kind   OrderKind
	Window uint64 // records that OrderWindow may hold; zero otherwise
}

// An Assign says by what rule the records of a step go to ranks.
type Assign uint8

const (
	AssignLocal  Assign = iota // to ranks where the bytes are, in equal shares
	AssignStrict               // by their position alone: rank r has the r-th run of the step
)

// A BatchUnit says what BatchSize counts.
type BatchUnit uint8

const (
	UnitRecords BatchUnit = iota
	UnitBytes             // on the mean: as many records as come to so many bytes
	UnitChunk             // one whole chunk for each rank
)

// A BatchSize is the amount that is read at a time.
type BatchSize struct {
	Unit BatchUnit
	N    uint64 // zero for UnitChunk
}

// A View says which rank reads which records in one epoch of a dataset. It is
// comparable, and equal views read equal bytes.
type View struct {
	Dataset string
	Epoch   uint64
	Ranks   uint64
	Seed    uint64
	Order   Order
	// Step is the amount that all ranks together read in one step. By it, not by the batch
	// of one rank, the order is cut: the same dataset read by
	// more ranks goes through the same steps.
	Step   BatchSize
	Tail   Tail
	Assign Assign
}

// Bounds on what a name can ask for, far above any real job and far below
// where the arithmetic of a view could overflow.
const (
	MaxRanks = 1 << 20
	MaxBatch = 1 << 40
	MaxName  = 112 // of a dataset; leaves room for a view's options in NAME_MAX
)

func (o Order) String() string {
	switch o.Kind {
	case OrderWindow:
		return "window:" + strconv.FormatUint(o.Window, 10)
	case OrderFull:
		return "full"
	}
	return "none"
}

// ParseOrder reads none, window:N or full.
func ParseOrder(s string) (Order, error) {
	switch s {
	case "none":
		return Order{}, nil
	case "full":
		return Order{Kind: OrderFull}, nil
	}
	if n, ok := strings.CutPrefix(s, "window:"); ok {
		w, err := parseNumber(n, 2, MaxBatch)
		if err != nil {
			return Order{}, fmt.Errorf("order %q: %w", s, err)
		}
		return Order{OrderWindow, w}, nil
	}
	return Order{}, fmt.Errorf("order %q %w: use none, full or window:N", s, ErrInvalid)
}

func (a Assign) String() string {
	return [...]string{"local", "strict"}[a]
}

// parseAssign reads local or strict.
func parseAssign(s string) (Assign, error) {
	for a := AssignLocal; a <= AssignStrict; a++ {
		if s == a.String() {
			return a, nil
		}
	}
	return 0, fmt.Errorf("assign %q %w: use local or strict", s, ErrInvalid)
}

func (b BatchSize) String() string {
	switch b.Unit {
	case UnitBytes:
		return FormatBytes(b.N)
	case UnitChunk:
		return "chunk"
	}
	return strconv.FormatUint(b.N, 10)
}

// ParseBatch reads a number of records, a size such as 64MiB, or chunk.
func ParseBatch(s string) (BatchSize, error) {
	if s == "chunk" {
		return BatchSize{Unit: UnitChunk}, nil
	}
	if n, err := parseNumber(s, 1, MaxBatch); err == nil {
		return BatchSize{UnitRecords, n}, nil
	}
	n, err := ParseBytes(s)
	if err != nil || n == 0 || n > MaxBatch {
		return BatchSize{}, fmt.Errorf("batch %q %w: use records (256) or bytes (64MiB), of either up to %d, or chunk", s, ErrInvalid, uint64(MaxBatch))
	}
	return BatchSize{UnitBytes, n}, nil
}

// parseNumber reads a plain decimal: no sign, no space, no leading zero, so
// that a number has one spelling only.
func parseNumber(s string, low, high uint64) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	switch {
	case err != nil || n < low || n > high:
		return 0, Worded(ErrInvalid, "%q is not a number from %d to %d", s, low, high)
	case strconv.FormatUint(n, 10) != s:
		return 0, Worded(ErrInvalid, "%q is not valid: write %d, without zeros before it", s, n)
	}
	return n, nil
}

// CheckName reports whether s can name a dataset, or a job or stage of the shuffle
// pool: letters, digits, dots, dashes and underscores, so that it needs no quoting in
// a shell, in a path or in a view, and never starts with a dot or a dash.
func CheckName(s string) error {
	if s == "" || len(s) > MaxName {
		return fmt.Errorf("name %q %w: use 1 to %d characters", s, ErrInvalid, MaxName)
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_'
		if !letter && (i == 0 || c != '.' && c != '-') {
			return fmt.Errorf("name %q %w: use letters, digits, '_', '.' and '-', not '.' or '-' first", s, ErrInvalid)
		}
	}
	return nil
}

// SplitView splits the name of a directory below /datasets into the dataset
// and the options of the view, if any. It checks neither.
func SplitView(name string) (dataset, options string, isView bool) {
	return strings.Cut(name, "@")
}

// With returns the view that the options describe, taking what they leave out
// from v. Options read key=value,key=value; no key may come twice.
func (v View) With(options string) (View, error) {
	seen := make(map[string]bool)
	for option := range strings.SplitSeq(options, ",") {
		key, value, ok := strings.Cut(option, "=")
		if !ok || seen[key] {
			return View{}, fmt.Errorf("view option %q %w: use key=value, each key once", option, ErrInvalid)
		}
		seen[key] = true
		if err := v.set(key, value); err != nil {
			return View{}, fmt.Errorf("view option %w", err)
		}
	}
	if seen["batch"] && seen["step"] {
		return View{}, Worded(ErrInvalid, "view options batch and step exclude each other: a step is a batch for each rank")
	}
	if seen["batch"] {
		v.Step = v.Step.Times(v.Ranks)
	}
	return v, v.Check()
}

func (v *View) set(key, value string) (err error) {
	switch key {
	case "epoch":
		v.Epoch, err = number(key, value, 0, math.MaxUint64)
	case "ranks":
		v.Ranks, err = number(key, value, 1, MaxRanks)
	case "seed":
		v.Seed, err = number(key, value, 0, math.MaxUint64)
	case "order":
		v.Order, err = ParseOrder(value)
	case "batch", "step":
		v.Step, err = ParseBatch(value)
	case "tail":
		v.Tail, err = ParseTail(value)
	case "assign":
		v.Assign, err = parseAssign(value)
	default:
		err = Worded(ErrInvalid, "%q: no such option; there are epoch, ranks, seed, order, batch, step, tail and assign", key+"="+value)
	}
	return err
}

// number reads that of an option, which its error names as those of the others do.
func number(key, value string, low, high uint64) (uint64, error) {
	n, err := parseNumber(value, low, high)
	if err != nil {
		err = fmt.Errorf("%s %w", key, err)
	}
	return n, err
}

// Times is the size of n batches; that of whole chunks has no number.
func (b BatchSize) Times(n uint64) BatchSize {
	return BatchSize{b.Unit, b.N * n}
}

// ByChunk reports whether a batch is one whole chunk; if not, it is of records.
func (v View) ByChunk() bool { return v.Step.Unit == UnitChunk }

// Batch is the size of the batch of one rank.
func (v View) Batch() BatchSize { return BatchSize{v.Step.Unit, v.Step.N / max(1, v.Ranks)} }

// Check reports what is wrong with a view that did not come from With. The
// name of a view that passes opens the same view.
func (v View) Check() error {
	switch {
	case v.Ranks < 1 || v.Ranks > MaxRanks:
		return fmt.Errorf("%d ranks %w: use 1 to %d", v.Ranks, ErrInvalid, MaxRanks)
	case !v.ByChunk() && (v.Step.N < 1 || v.Step.N > MaxBatch):
		return fmt.Errorf("step of %v %w: use 1 to %d", v.Step, ErrInvalid, uint64(MaxBatch))
	case v.Step.Unit > UnitChunk || v.ByChunk() && v.Step.N != 0:
		return fmt.Errorf("step of %d in unit %d %w: whole chunks have no number", v.Step.N, v.Step.Unit, ErrInvalid)
	case v.Order.Kind == OrderWindow && (v.Order.Window < 2 || v.Order.Window > MaxBatch):
		return fmt.Errorf("order %v %w: use a window of 2 to %d records", v.Order, ErrInvalid, uint64(MaxBatch))
	case v.Order.Kind > OrderFull || v.Order.Kind != OrderWindow && v.Order.Window != 0:
		return fmt.Errorf("order %d with a window of %d %w: use none, full or window:N", v.Order.Kind, v.Order.Window, ErrInvalid)
	case v.Tail > TailPad:
		return fmt.Errorf("tail %d %w: use keep, drop or pad", v.Tail, ErrInvalid)
	case v.Assign > AssignStrict:
		return fmt.Errorf("assign %d %w: use local or strict", v.Assign, ErrInvalid)
	}
	return nil
}

// String spells every option out, in a fixed order: a name under which the
// view can be opened whatever the dataset's defaults are.
func (v View) String() string {
	return fmt.Sprintf("%s@epoch=%d,ranks=%d,seed=%d,order=%v,step=%v,tail=%v,assign=%v",
		v.Dataset, v.Epoch, v.Ranks, v.Seed, v.Order, v.Step, v.Tail, v.Assign)
}

// Short is the shortest name of v, a view of a dataset whose own view is own: without
// the options that are the dataset's own. A step that is a batch for each rank is named by
// the batch, as datasets are made with it.
func (v View) Short(own View) string {
	_, all, _ := SplitView(v.String())
	_, usual, _ := SplitView(own.String())
	given := strings.Split(usual, ",")
	others := slices.DeleteFunc(strings.Split(all, ","), func(option string) bool { return slices.Contains(given, option) })
	if i := slices.Index(others, "step="+v.Step.String()); i >= 0 && v.Batch().Times(v.Ranks) == v.Step {
		others[i] = "batch=" + v.Batch().String()
	}
	if len(others) == 0 {
		return v.Dataset
	}
	return v.Dataset + "@" + strings.Join(others, ",")
}

// Cut divides a dataset of so many records, bytes and chunks as v asks. The
// positions of the cut are chunks where Step is whole chunks.
func (v View) Cut(records uint64, bytes int64, chunks uint64) Cut {
	c := Cut{N: records, Global: v.Step.N, Ranks: v.Ranks, Tail: v.Tail}
	switch v.Step.Unit {
	case UnitChunk:
		c.N, c.Global = chunks, v.Ranks
	case UnitBytes:
		// Records of less than a byte on the mean count as a byte each.
		c.Global = max(1, mulDiv(v.Step.N, records, max(1, records, uint64(bytes))))
	}
	return c
}

var byteUnits = []struct {
	name string
	size uint64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3},
	{"T", 1 << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"B", 1},
}

// ParseBytes reads a size with its unit: 64MiB, 2G, 512B. Zero needs none.
func ParseBytes(s string) (uint64, error) {
	for _, u := range byteUnits {
		number, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := parseNumber(number, 0, math.MaxInt64/u.size)
		if err != nil {
			break
		}
		return n * u.size, nil
	}
	if s == "0" {
		return 0, nil
	}
	return 0, fmt.Errorf("size %q %w: use a number and a unit up to TiB, as 512MiB or 2GiB", s, ErrInvalid)
}

// FormatTime writes d as options take it, without units of which there are none: 24h, 90m
// is 1h30m.
func FormatTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// FormatBytes writes n, up to math.MaxInt64, so that ParseBytes reads it back
// exactly.
func FormatBytes(n uint64) string {
	for _, u := range byteUnits[:4] {
		if n >= u.size && n%u.size == 0 {
			return strconv.FormatUint(n/u.size, 10) + u.name
		}
	}
	return strconv.FormatUint(n, 10) + "B"
}

// FormatRoom is a size of memory to ask for: rounded up, so that it is short, but to no
// more than a hundredth above.
func FormatRoom(bytes int64) string {
	unit := int64(1)
	for unit*100<<10 <= bytes && unit < 1<<30 {
		unit <<= 10
	}
	return FormatBytes(uint64((bytes + unit - 1) / unit * unit))
}

// WholePages rounds up to whole pages, of which a slab in memory consists.
func WholePages(bytes int64) int64 {
	page := int64(os.Getpagesize())
	return (bytes + page - 1) / page * page
}

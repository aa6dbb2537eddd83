package meta

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// PoolDir is the directory of a mount in which its shuffle pool is.
const PoolDir = "shuffle"

// Bounds of the stages of a shuffle.
const (
	MaxMaps   = 1 << 18
	MaxParts  = 1 << 20
	MaxCopies = 8
	// DefaultCopies of each map: one node may be lost.
	DefaultCopies = 2
	// DefaultLife is the life of a job that is not used and was never held.
	DefaultLife = 24 * time.Hour
)

// When a map is committed: once its copies are on nodes, or once they are on their disks.
const (
	ackReplicated = "replicated"
	ackDurable    = "durable"
)

// Where the first copy of a map is.
const (
	placeWriter = "writer" // on the node of its writer
	placeRing   = "ring"   // where its name says, as the others
)

// A Compression packs the bytes of a stage while they go from node to node. Nodes tell
// each other its number.
type Compression uint8

// The compressions.
const (
	Uncompressed Compression = iota
	LZ4
	Zstd
)

var compressions = []string{"none", "lz4", "zstd"}

// Known reports whether there is one of that number.
func (c Compression) Known() bool { return int(c) < len(compressions) }

func (c Compression) String() string { return compressions[c] }

// A Stage says how the maps of one stage of a shuffle are divided, and kept. Its text,
// as a person writes it into the file spec, is a list of KEY=VALUE.
type Stage struct {
	Maps    uint64 // that seal the stage when all are committed; zero: a person seals it
	Parts   uint64
	Copies  int
	Strict  bool          // a commit fails where there are fewer copies
	Durable bool          // a map is committed once its copies are on disks
	Ring    bool          // the first copy is where the map's name says, too, not on its writer's node
	Packed  Compression   // of what goes between nodes
	Life    time.Duration // how long the job lives when it is not used
	Weight  uint64        // of its job's work beside that of others; zero: as much as there is
	Records Records       // what the pool knows of what is in maps
}

// MaxWeight is the weight of a stage whose spec has none: no stage has more
// than an equal share, and one of less weight leaves some to others.
const MaxWeight = 100

// Weighs is the weight of its work, from one to MaxWeight.
func (s Stage) Weighs() uint64 { return cmp.Or(s.Weight, MaxWeight) }

// Slices is the number of pieces of about one size into which a map is cut whose parts are ranges of
// keys: a few for each part, so that these are even.
func (s Stage) Slices() uint64 { return min(max(4*s.Parts, 64), 1024) }

// Pieces is the number of pieces of a map: one for each part, or its slices and the keys with
// which they begin.
func (s Stage) Pieces() uint64 {
	if s.Records.Ranges {
		return s.Slices() + 1
	}
	return s.Parts
}

// CheckStage reports why users may not give a stage a spec of that text. Releases before let
// them give some that have no meaning: so ParseStage reads those still, from logs and other nodes.
func CheckStage(text string) error {
	s, err := ParseStage(text)
	if err != nil {
		return err
	}
	saysSep := slices.ContainsFunc(strings.Fields(text), func(field string) bool { return strings.HasPrefix(field, "sep=") })
	if saysSep && s.Records.Key.Field == 0 {
		return fmt.Errorf("sep= in spec %w: fields end there, and the key is none; write key=N for field N, or leave sep= out", ErrInvalid)
	}
	return nil
}

// ParseStage reads the text of a spec.
func ParseStage(text string) (s Stage, err error) {
	s = Stage{Parts: 1, Copies: DefaultCopies, Life: DefaultLife}
	seen := make(map[string]bool)
	for field := range strings.FieldsSeq(text) {
		key, value, ok := strings.Cut(field, "=")
		if !ok || value == "" {
			return Stage{}, fmt.Errorf("%q in spec %w: write KEY=VALUE, as in maps=16 parts=8", clip(field), ErrInvalid)
		}
		if seen[key] {
			return Stage{}, fmt.Errorf("spec with two values of %s %w", clip(key), ErrInvalid)
		}
		seen[key] = true
		if err := s.set(key, value); err != nil {
			return Stage{}, err
		}
	}
	if len(seen) == 0 {
		return Stage{}, fmt.Errorf("empty spec %w: write for instance maps=16 parts=8", ErrInvalid)
	}
	if err := s.Records.complete(seen); err != nil {
		return Stage{}, err
	}
	return s, nil
}

func (s *Stage) set(key, value string) (err error) {
	switch key {
	case "maps":
		s.Maps, err = count(key, value, MaxMaps)
	case "parts":
		s.Parts, err = count(key, value, MaxParts)
	case "copies":
		var n uint64
		n, err = count(key, value, MaxCopies)
		s.Copies = int(n)
	case "strict":
		if value != "0" && value != "1" {
			return fmt.Errorf("strict=%s in spec %w: write strict=0 or strict=1", clip(value), ErrInvalid)
		}
		s.Strict = value == "1"
	case "ack":
		if value != ackReplicated && value != ackDurable {
			return fmt.Errorf("ack=%s in spec %w: write ack=%s or ack=%s", clip(value), ErrInvalid, ackReplicated, ackDurable)
		}
		s.Durable = value == ackDurable
	case "place":
		if value != placeWriter && value != placeRing {
			return fmt.Errorf("place=%s in spec %w: write place=%s or place=%s", clip(value), ErrInvalid, placeWriter, placeRing)
		}
		s.Ring = value == placeRing
	case "compress":
		i := slices.Index(compressions, value)
		if i < 0 {
			return fmt.Errorf("compress=%s in spec %w: write compress=none, compress=lz4 or compress=zstd", clip(value), ErrInvalid)
		}
		s.Packed = Compression(i)
	case "weight":
		if s.Weight, err = count(key, value, MaxWeight); s.Weight == MaxWeight {
			s.Weight = 0
		}
	case "ttl":
		s.Life, err = time.ParseDuration(value)
		if err != nil || s.Life < time.Second || s.Life > 365*24*time.Hour {
			return fmt.Errorf("ttl=%s in spec %w: write a time from 1s to 8760h, as in ttl=90m", clip(value), ErrInvalid)
		}
	default:
		known, err := s.Records.set(key, value)
		if !known {
			return fmt.Errorf("%s= in spec %w: there are maps, parts, copies, ack, place, strict, compress, weight and ttl, and record, key, sep, by, sort and combine", clip(key), ErrInvalid)
		}
		return err
	}
	return err
}

// count is a value of a spec that says how many.
func count(key, value string, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil || n < 1 || n > most {
		return 0, fmt.Errorf("%s=%s in spec %w: write a number from 1 to %d", key, clip(value), ErrInvalid, most)
	}
	return n, nil
}

// String is the text that is equal for equal stages.
func (s Stage) String() string {
	var b strings.Builder
	if s.Maps > 0 {
		fmt.Fprintf(&b, "maps=%d ", s.Maps)
	}
	fmt.Fprintf(&b, "parts=%d copies=%d", s.Parts, s.Copies)
	if s.Durable {
		b.WriteString(" ack=" + ackDurable)
	}
	if s.Ring {
		b.WriteString(" place=" + placeRing)
	}
	if s.Strict {
		b.WriteString(" strict=1")
	}
	if s.Weight != 0 {
		fmt.Fprintf(&b, " weight=%d", s.Weight)
	}
	if s.Packed != Uncompressed {
		b.WriteString(" compress=" + s.Packed.String())
	}
	if s.Life != DefaultLife {
		b.WriteString(" ttl=" + s.Life.String())
	}
	return b.String() + s.Records.String()
}

// MarshalText implements encoding.TextMarshaler. The zero Stage, of which nothing is
// said yet, has no text.
func (s Stage) MarshalText() ([]byte, error) {
	if s == (Stage{}) {
		return nil, nil
	}
	return []byte(s.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler. It takes what MarshalText makes,
// and nothing else.
func (s *Stage) UnmarshalText(text []byte) (err error) {
	*s = Stage{}
	if len(text) == 0 {
		return nil
	}
	if *s, err = ParseStage(string(text)); err == nil && s.String() != string(text) {
		err = fmt.Errorf("spec %q %w: spell it %s", clip(string(text)), ErrInvalid, s)
	}
	return err
}

// An Attempt names the output of one attempt of a map task: the file .map-MMMMMM.A.
type Attempt struct {
	Map    uint64
	Number uint64
}

const mapPrefix = "map-"

// ParseAttempt reads the name of an attempt's file, without the .idx of its offsets.
func ParseAttempt(name string) (a Attempt, ok bool) {
	rest, ok := strings.CutPrefix(name, "."+mapPrefix)
	number, attempt, dot := strings.Cut(rest, ".")
	if !ok || !dot {
		return Attempt{}, false
	}
	m, ok := parseSix(number, MaxMaps)
	n, err := strconv.ParseUint(attempt, 10, 32)
	if !ok || err != nil || strconv.FormatUint(n, 10) != attempt {
		return Attempt{}, false
	}
	return Attempt{m, n}, true
}

// String is the name of the attempt's file.
func (a Attempt) String() string { return fmt.Sprintf(".map-%06d.%d", a.Map, a.Number) }

// MapName is the name of a map that is committed.
func MapName(number uint64) string { return fmt.Sprintf("map-%06d", number) }

// ParseMap reads the name of a map.
func ParseMap(name string) (number uint64, ok bool) {
	rest, ok := strings.CutPrefix(name, mapPrefix)
	if !ok {
		return 0, false
	}
	return parseSix(rest, MaxMaps)
}

// A Part names what a reducer reads of the maps of a stage: of all, or of those from From to
// To, both included; or the file of its offsets.
type Part struct {
	Number   uint64
	From, To uint64
	Ranged   bool
	Offsets  bool // where its records, or its maps' pieces, begin; and not itself
}

// offsetsSuffix ends the name of a file of offsets.
const offsetsSuffix = ".idx"

// String is the name of the part's file.
func (p Part) String() string {
	name := fmt.Sprintf("part-%06d", p.Number)
	if p.Ranged {
		name += fmt.Sprintf("@maps=%d-%d", p.From, p.To)
	}
	if p.Offsets {
		name += offsetsSuffix
	}
	return name
}

// ParsePart reads the name of a part's file.
func ParsePart(name string) (p Part, ok bool) {
	rest, ok := strings.CutPrefix(name, "part-")
	rest, p.Offsets = strings.CutSuffix(rest, offsetsSuffix)
	if !ok {
		return Part{}, false
	}
	number, maps, ranged := strings.Cut(rest, "@maps=")
	if p.Number, ok = parseSix(number, MaxParts); !ok {
		return Part{}, false
	}
	if ranged {
		from, to, dash := strings.Cut(maps, "-")
		var err1, err2 error
		p.From, err1 = strconv.ParseUint(from, 10, 32)
		p.To, err2 = strconv.ParseUint(to, 10, 32)
		p.Ranged = true
		if !dash || err1 != nil || err2 != nil || p.From > p.To || p.To >= MaxMaps {
			return Part{}, false
		}
	}
	return p, p.String() == name
}

// parseSix reads a number with six digits, or more where it needs them.
func parseSix(s string, most uint64) (uint64, bool) {
	n, err := strconv.ParseUint(s, 10, 32)
	return n, err == nil && n < most && fmt.Sprintf("%06d", n) == s
}

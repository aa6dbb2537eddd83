package pressure

import (
	"bytes"
	"errors"
	"io/fs"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// absent reports whether a file is not there, as far as a reader can tell: PSI
// that is switched off has files that cannot be read.
func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EOPNOTSUPP) || errors.Is(err, syscall.ENODEV)
}

// number parses a count. What is more than 63 bits is taken for NoLimit.
func number(s string) (int64, bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	return n, n >= 0 && (err == nil || errors.Is(err, strconv.ErrRange))
}

// field finds a line that begins with a name, and the number after it.
func field(b []byte, name string) (int64, bool) {
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) >= 2 && f[0] == name {
			return number(f[1])
		}
	}
	return 0, false
}

// A Stall is how long some task of a group waited for memory. It is zero where
// the kernel does not say.
type Stall struct {
	Mean  float64       // the part of the last ten seconds, 0 to 1
	Total time.Duration // since the group began
}

// readStall reads the line "some avg10=0.12 avg60=0.05 avg300=0.01 total=34" of
// PSI. What it does not understand says nothing.
func readStall(root fs.FS, name string) (Stall, error) {
	b, err := readFile(root, name)
	if err != nil {
		return Stall{}, err
	}
	for line := range bytes.Lines(b) {
		if f := strings.Fields(string(line)); len(f) > 2 && f[0] == "some" {
			return parseStall(f[1], f[len(f)-1]), nil
		}
	}
	return Stall{}, nil
}

func parseStall(mean, total string) (s Stall) {
	mean, _ = strings.CutPrefix(mean, "avg10=")
	if percent, err := strconv.ParseFloat(mean, 64); err == nil && percent >= 0 && percent <= 100 {
		s.Mean = percent / 100
	}
	total, _ = strings.CutPrefix(total, "total=")
	if us, ok := number(total); ok && us < math.MaxInt64/1000 {
		s.Total = time.Duration(us) * time.Microsecond
	}
	return s
}

// readFile reads a file that need not be there: a root group has no limits, a
// kernel may have no PSI, and a group may just have been removed.
func readFile(root fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(root, name)
	if err != nil && !absent(err) {
		return nil, err
	}
	return b, nil
}

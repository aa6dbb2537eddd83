package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"rankfs/cmd/internal/control"
	"rankfs/cmd/internal/failure"
	"rankfs/meta"
)

// maxHostfile is the size of the longest hostfile: one line for each of the
// most ranks that there can be.
const maxHostfile = 64 << 20

// readHostfile says where a hostfile has the ranks of a job.
func readHostfile(path string) ([]control.Seat, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, failure.Unread("hostfile", path, err)
	}
	defer f.Close()
	seats, err := parseHostfile(io.LimitReader(f, maxHostfile))
	if err != nil {
		var odd *fs.PathError
		if errors.As(err, &odd) { // a directory, or a disk that fails
			return nil, failure.Unread("hostfile", path, err)
		}
		return nil, failure.Hint(meta.Worded(meta.ErrInvalid, "hostfile %s: %v", path, err), "have lines of HOST slots=N, or the host of each rank")
	}
	return seats, nil
}

// parseHostfile reads one host a line. Where lines say slots=N, as Open MPI has
// it, or host:N, as MPICH has it, those of a host that comes again are added to
// its first ones, as mpirun does. A plain list has the host of each rank.
func parseHostfile(r io.Reader) ([]control.Seat, error) {
	var seats []control.Seat
	first := make(map[string]int) // line of seats
	plain, ranks := true, uint64(0)
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		s, counted, err := parseHost(lines.Text())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if s.Ranks == 0 {
			continue
		}
		if ranks += s.Ranks; ranks > meta.MaxRanks {
			return nil, fmt.Errorf("line %d: more than %d ranks", n, meta.MaxRanks)
		}
		plain = plain && !counted
		i, again := first[s.Host]
		switch last := len(seats) - 1; {
		case last >= 0 && seats[last].Host == s.Host:
			seats[last].Ranks += s.Ranks
		case again && !plain:
			seats[i].Ranks += s.Ranks
		default:
			first[s.Host] = len(seats)
			seats = append(seats, s)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(seats) == 0 {
		return nil, fmt.Errorf("it names no host")
	}
	return seats, nil
}

// parseHost reads one line: "host", "host slots=N max_slots=M" or "host:N". A line
// without a host has no ranks. Counted says whether it had a number.
func parseHost(line string) (s control.Seat, counted bool, err error) {
	line, _, _ = strings.Cut(line, "#")
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return s, false, nil
	}
	s = control.Seat{Host: fields[0], Ranks: 1}
	s.Host = s.Host[strings.LastIndexByte(s.Host, '@')+1:]                        // of user@host
	if host, n, ok := strings.Cut(s.Host, ":"); ok && !strings.Contains(n, ":") { // not an IPv6 address
		if s.Host, counted = host, true; s.Host != "" {
			s.Ranks, err = parseSlots(n)
		}
	}
	for _, f := range fields[1:] {
		switch key, n, ok := strings.Cut(f, "="); {
		case key == "slots" && ok:
			counted = true
			s.Ranks, err = parseSlots(n)
		case (key == "max_slots" || key == "max-slots") && ok:
		default:
			err = fmt.Errorf("%q is not slots=N", f)
		}
		if err != nil {
			return s, counted, err
		}
	}
	if s.Host == "" {
		err = fmt.Errorf("%q names no host", fields[0])
	}
	return s, counted, err
}

func parseSlots(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < 1 || n > meta.MaxRanks {
		return 0, fmt.Errorf("%q is not a number of ranks from 1 to %d", s, meta.MaxRanks)
	}
	return n, nil
}

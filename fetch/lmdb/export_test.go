package lmdb

import (
	"context"
	"io"
)

// Walk goes through every record of a file as Scan does and returns the
// number of records and the end of the last byte of any of them.
func Walk(file io.ReaderAt, size int64, db string) (records int, end int64, err error) {
	h, err := readHead(file, "file")
	if err != nil {
		return 0, 0, err
	}
	ctx := context.Background()
	w := newWalker(file, "file", size, h)
	t, err := w.database(ctx, db)
	if err != nil {
		return 0, 0, err
	}
	err = w.records(ctx, t, func(spans []span) error {
		records += len(spans)
		for _, s := range spans {
			if s.off < 0 || s.length < 0 {
				panic("negative span")
			}
			end = max(end, s.off+s.length)
		}
		return nil
	})
	return records, end, err
}

// Unheld returns nil if the attached snapshot is held, and otherwise why it cannot be:
// then the source is stale as soon as a writer changes the file.
func (s *Source) Unheld() error {
	at := s.attached
	if at.hold != nil {
		return nil
	}
	_, err := new(Holds).hold(at.place, at.id, at.head)
	return err
}

// Readers lists the table of readers of the lock file that s uses.
func (s *Source) Readers() (lines []string) {
	_ = s.attached.hold.on.env.ReaderList(func(line string) error {
		lines = append(lines, line)
		return nil
	})
	return lines[1:]
}

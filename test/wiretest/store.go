package wiretest

import (
	"context"
	"encoding/binary"

	"rankfs/meta"
	"rankfs/meta/wire"
)

// Dataset is the id of what a Store has.
var Dataset = [32]byte{1, 2, 3}

// A Store has records whose bytes say which they are. They are up to Mean*2
// bytes long, some of them empty.
type Store struct {
	Mean   uint64
	Before func(ctx context.Context) error // each record; may be nil
}

// Length is how long a record is.
func (s *Store) Length(record uint64) int {
	if record%7 == 3 {
		return 0
	}
	return int(record * 2654435761 % (2 * s.Mean))
}

func (s *Store) record(b []byte, record uint64) []byte {
	from := len(b)
	for n := s.Length(record); len(b)-from < n; {
		b = binary.LittleEndian.AppendUint64(b, record*0x9e3779b97f4a7c15+uint64(len(b)-from))
	}
	return b[:from+s.Length(record)]
}

// Gather emits runs of records, lending their bytes.
func (s *Store) Gather(ctx context.Context, id [32]byte, runs []wire.Run, emit func([]byte) error) error {
	if id != Dataset {
		return meta.ErrNotExist
	}
	var b []byte
	for _, r := range runs {
		for record := r.First; record < r.First+r.N; record++ {
			if s.Before != nil {
				if err := s.Before(ctx); err != nil {
					return err
				}
			}
			b = s.record(b[:0], record)
			if err := emit(b); err != nil {
				return err
			}
			clear(b) // it was only lent
		}
	}
	return nil
}

// Want is what runs of records have to bring.
func (s *Store) Want(runs []wire.Run) []byte {
	var b []byte
	for _, r := range runs {
		for record := r.First; record < r.First+r.N; record++ {
			b = s.record(b, record)
		}
	}
	return b
}

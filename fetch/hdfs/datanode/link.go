package datanode

import (
	"errors"
	"fmt"
	"io"

	"github.com/colinmarc/hdfs/v2"

	"rankfs/meta"
	"rankfs/meta/stall"
)

// A link is one replica being read through the library.
type link struct {
	client *hdfs.Client
	file   *hdfs.FileReader
	wire   *wire
	end    int64       // of the range, in the block
	stop   func() bool // of the watch over the context
}

// fill reads p in full.
//
// The library returns the bytes of a packet with a wrong checksum, or one that ended
// early, as if all were well; only its next Read has the error. So the last byte of p
// is always read alone: the library checks a read that short before it returns, and
// an error of an earlier packet comes first.
func (l *link) fill(p []byte) error {
	for len(p) > 0 {
		n, err := l.read(p[:max(1, len(p)-1)])
		p, l.wire.at = p[n:], l.wire.at+int64(n)
		l.wire.idle = l.wire.idle && n == 0
		if err == io.EOF {
			if l.wire.at == l.end && len(p) == 0 {
				return nil
			}
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return l.wire.explain(err)
		}
	}
	return nil
}

// read calls the library, which panics on some answers that no sound datanode
// gives. A fault in p itself is the caller's.
func (l *link) read(p []byte) (n int, err error) {
	defer func() {
		v := recover()
		if _, fault := v.(interface{ Addr() uintptr }); fault {
			panic(v)
		}
		if v != nil {
			err = fmt.Errorf("its answer %w: %v", meta.ErrCorrupt, v)
		}
	}()
	n, err = l.file.Read(p)
	return n, named(err)
}

func (l *link) way() stall.Cause { return overTCP(l.wire.local) }

func (l *link) close() {
	if l.file != nil {
		l.file.Close()
	}
	l.client.Close()
	l.wire.close()
	l.stop()
}

// overTCP is the cause to count bytes under that come through a datanode, on this
// host or another.
func overTCP(local bool) stall.Cause {
	if local {
		return stall.ByTCP
	}
	return stall.Remote
}

// errBytes is the error of a replica whose bytes do not match their checksums.
var errBytes = errors.New("its bytes are wrong")

// named tells the library's error of that from all others, by its words: it is not
// exported. What a datanode says comes with more of them.
func named(err error) error {
	if err != nil && err.Error() == "invalid checksum" {
		return fmt.Errorf("%w: %w", errBytes, err)
	}
	return err
}

package sequence

import (
	"bufio"
	"fmt"
	"io"

	"rankfs/meta"
)

const (
	// maxHeader bounds a header, nearly all of which is metadata: Avro and
	// Hive put schemas there, of some kilobytes.
	maxHeader = 1 << 20
	// maxClass bounds the name of a class; Java's own limit is 64 KiB, too much
	// for an error message that quotes the name.
	maxClass = 1 << 10

	syncBytes = 16
)

// A Compression says what the codec was applied to.
type Compression int

const (
	Uncompressed Compression = iota
	ByRecord                 // each value by itself
	ByBlock                  // many values together
)

// A Header is the parsed header of a file.
type Header struct {
	Version     int
	Value       string // class
	Compression Compression
	Codec       string // class; empty if nothing is compressed
	Length      int64  // of the header, sync marker included

	sync  [syncBytes]byte
	codec *codec
}

// ReadHeader reads the header of a file of that size, and refuses files that
// the package cannot decode.
func ReadHeader(r io.ReaderAt, size int64) (Header, error) {
	d := headerReader{r: bufio.NewReader(io.NewSectionReader(r, 0, min(size, maxHeader)))}
	var h Header
	d.header(&h)
	switch err := d.err; {
	case err == nil:
		return h, nil
	case !isEnd(err):
		return Header{}, fmt.Errorf("header: %w", err)
	case size > maxHeader:
		return Header{}, fmt.Errorf("header: offset %d: more than %d bytes of metadata: it %w", d.off, maxHeader, meta.ErrCorrupt)
	default:
		return Header{}, fmt.Errorf("header: offset %d: the file ends in it: it %w", d.off, meta.ErrCorrupt)
	}
}

// A headerReader reads the fields of a header. The first error sticks.
type headerReader struct {
	r   *bufio.Reader
	off int64
	err error
}

func (d *headerReader) header(h *Header) {
	h.Version = d.version()
	d.text(maxClass) // of keys
	h.Value = d.text(maxClass)
	h.Compression = d.compression()
	if h.Compression != Uncompressed {
		h.Codec = defaultCodec
		if h.Version >= 5 {
			h.Codec = d.text(maxClass)
		}
		h.codec = d.codec(h.Codec)
	}
	if h.Version >= 6 {
		d.metadata()
	}
	copy(h.sync[:], d.bytes(syncBytes))
	h.Length = d.off
}

// isEnd reports whether there are no more bytes; why else they do not come is for
// the reader to say.
func isEnd(err error) bool { return err == io.EOF || err == io.ErrUnexpectedEOF }

func (d *headerReader) version() int {
	b := d.bytes(4)
	switch {
	case isEnd(d.err) && d.off == 0 || d.err == nil && string(b[:3]) != "SEQ":
		d.err = fmt.Errorf("it does not begin with SEQ and a version: this as a SequenceFile %w: name the format that it has", meta.ErrInvalid)
	case d.err == nil && (b[3] < 4 || b[3] > 6):
		d.err = fmt.Errorf("version %d of the format %w: write the file with Hadoop 1 to 3, which make version 6", b[3], meta.ErrInvalid)
	}
	if d.err != nil {
		return 0
	}
	return int(b[3])
}

func (d *headerReader) compression() Compression {
	b := d.bytes(2) // is compressed, is compressed by block
	switch {
	case d.err != nil || b[0] == 0 && b[1] == 0:
		return Uncompressed
	case b[0] == 0:
		d.damaged("blocks without compression")
		return Uncompressed
	case b[1] == 0:
		return ByRecord
	}
	return ByBlock
}

func (d *headerReader) codec(name string) *codec {
	if d.err != nil {
		return nil
	}
	c := codecs[name]
	if c == nil {
		d.err = meta.Worded(meta.ErrInvalid, "codec %q is not one that can be read: write the file with one of %s", name, codecNames())
	}
	return c
}

// metadata passes over entries of a key and a value each.
func (d *headerReader) metadata() {
	b := d.bytes(4)
	if d.err != nil {
		return
	}
	n := bigInt32(b)
	if n < 0 {
		d.damaged("%d entries of metadata", n)
	}
	for ; n > 0 && d.err == nil; n-- {
		d.text(maxHeader)
		d.text(maxHeader)
	}
}

func (d *headerReader) text(most int64) string {
	if d.err != nil {
		return ""
	}
	n, used, err := readVint(d.r)
	d.off += used
	switch d.err = err; {
	case err == errVint:
		d.damaged("%w", err)
	case err == nil && (n < 0 || n > most):
		d.damaged("a text of %d bytes, at most %d", n, most)
	}
	return string(d.bytes(n))
}

func (d *headerReader) bytes(n int64) []byte {
	if d.err != nil {
		return nil
	}
	b := make([]byte, n)
	read, err := io.ReadFull(d.r, b)
	d.off += int64(read)
	d.err = err
	return b
}

func (d *headerReader) damaged(format string, args ...any) {
	d.err = fmt.Errorf("offset %d: %w: it %w", d.off, fmt.Errorf(format, args...), meta.ErrCorrupt)
}

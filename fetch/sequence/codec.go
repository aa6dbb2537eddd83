package sequence

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"rankfs/meta"
)

const (
	defaultCodec = "org.apache.hadoop.io.compress.DefaultCodec"

	// decoderBuffer is on either side of a decoder, so that it neither
	// reads nor is read in small pieces.
	decoderBuffer = 32 << 10

	// maxWindow bounds how far back a Zstandard stream may refer, which is
	// kept in memory. Up to level 19 no writer asks for more.
	maxWindow = 8 << 20
)

// codecs are the codecs that can be read, by Hadoop's names of their classes.
var codecs = map[string]*codec{
	defaultCodec: {open: func() engine { return new(zlibEngine) }},
	"org.apache.hadoop.io.compress.DeflateCodec":   {open: func() engine { return new(zlibEngine) }},
	"org.apache.hadoop.io.compress.GzipCodec":      {open: func() engine { return new(gzipEngine) }},
	"org.apache.hadoop.io.compress.BZip2Codec":     {open: func() engine { return new(bzip2Engine) }},
	"org.apache.hadoop.io.compress.SnappyCodec":    {open: func() engine { return &frames{block: snappyBlock{}} }},
	"org.apache.hadoop.io.compress.Lz4Codec":       {open: func() engine { return &frames{block: lz4Block{}} }},
	"org.apache.hadoop.io.compress.ZStandardCodec": {open: func() engine { return new(zstdEngine) }},
}

// codecNames is for messages.
func codecNames() string {
	var names []string
	for name := range maps.Keys(codecs) {
		names = append(names, strings.TrimPrefix(path.Ext(name), "."))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// A codec makes decoders, and keeps some that are not in use.
type codec struct {
	open func() engine
	idle sync.Pool
}

func (c *codec) get() *decoder {
	if d, ok := c.idle.Get().(*decoder); ok {
		return d
	}
	return &decoder{
		engine: c.open(),
		src:    bufio.NewReaderSize(nil, decoderBuffer),
		out:    bufio.NewReaderSize(nil, decoderBuffer),
	}
}

func (c *codec) put(d *decoder) {
	d.src.Reset(nil)
	d.out.Reset(nil)
	c.idle.Put(d)
}

// An engine undoes one compression. It is used for many streams in turn.
type engine interface {
	reset(r *bufio.Reader) error
	io.Reader
}

// A decoder is an engine between buffers.
type decoder struct {
	engine engine
	src    *bufio.Reader
	out    *bufio.Reader // of decoded bytes
}

func (d *decoder) reset(r io.Reader) error {
	d.src.Reset(r)
	d.out.Reset(d.engine)
	return d.engine.reset(d.src)
}

// ended is an error unless all was decoded, and all of that was read.
func (d *decoder) ended() error {
	if err := atEnd(d.out); err != nil {
		return fmt.Errorf("after the last value: %w", err)
	}
	if err := atEnd(d.src); err != nil {
		return fmt.Errorf("after the compressed bytes: %w", err)
	}
	return nil
}

func atEnd(r *bufio.Reader) error {
	switch _, err := r.Peek(1); err {
	case io.EOF:
		return nil
	case nil:
		return errors.New("more bytes")
	default:
		return err
	}
}

// A zlibEngine reads zlib streams, of which several may follow one another.
type zlibEngine struct {
	z   io.ReadCloser
	src *bufio.Reader
}

func (e *zlibEngine) reset(r *bufio.Reader) (err error) {
	e.src = r
	if e.z != nil {
		return unexpected(e.z.(zlib.Resetter).Reset(r, nil))
	}
	e.z, err = zlib.NewReader(r)
	return unexpected(err)
}

func (e *zlibEngine) Read(p []byte) (int, error) {
	for {
		n, err := e.z.Read(p)
		if err != io.EOF {
			return n, err
		}
		if n > 0 { // the end will be met again
			return n, nil
		}
		if _, err := e.src.Peek(1); err != nil {
			return 0, err
		}
		if err := e.reset(e.src); err != nil {
			return 0, err
		}
	}
}

type gzipEngine struct{ gzip.Reader }

func (e *gzipEngine) reset(r *bufio.Reader) error { return unexpected(e.Reset(r)) }

// A bzip2Engine makes a new reader for each stream: those of the library
// cannot be reused.
type bzip2Engine struct{ io.Reader }

func (e *bzip2Engine) reset(r *bufio.Reader) error {
	e.Reader = bzip2.NewReader(r)
	return nil
}

type zstdEngine struct{ z *zstd.Decoder }

func (e *zstdEngine) reset(r *bufio.Reader) (err error) {
	if e.z == nil {
		e.z, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1),
			zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return err
		}
	}
	return e.z.Reset(r)
}

func (e *zstdEngine) Read(p []byte) (int, error) {
	n, err := e.z.Read(p)
	if errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		err = fmt.Errorf("a Zstandard window over %d bytes %w: write the file with level 19 or less", maxWindow, meta.ErrInvalid)
	}
	return n, err
}

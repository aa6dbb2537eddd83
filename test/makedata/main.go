// Command makedata makes test data, the same bytes for the same arguments.
//
//	makedata datum  -n N -o DIR           LMDB of Caffe Datum images
//	makedata lmdb   -n N -size B -o DIR   LMDB of records that verify themselves
//	makedata lines  -n N -size B -o FILE  text, B bytes a line on the mean
//	makedata keyed  -n N -size B -o FILE  text, B bytes a line, which begins with a key and a tab
//	makedata text   -n N -size B -o FILE  text of words, some B bytes a line
//	makedata fixed  -n N -size B -o FILE  records of B bytes, back to back
//	makedata points -n N          -o FILE  points of eight classes, 64 floats each
//	makedata tree   -n N -size B -o DIR   files of B bytes on the mean
//
// With -checksums it writes the XXH64 of every record, in the order of the
// source, one in hexadecimal a line: a reader that verifies needs no access to the
// source. It prints one line that says what was made.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"
)

// A Maker puts the records of a corpus into some container, in the order of
// the source, and calls made with the key (empty if it has none) and the bytes
// of each as a reader will see them.
type Maker func(c Corpus, out string, made func(key, value []byte) error) error

type kind struct {
	size   int // the default of -size
	make   Maker
	corpus func(c Corpus) Corpus
}

var kinds = map[string]kind{
	"datum":  {0, makeLMDB, Corpus.datum},
	"lmdb":   {4096, makeLMDB, Corpus.words},
	"lines":  {80, makeFile, Corpus.lines},
	"keyed":  {100, makeFile, Corpus.keyed},
	"text":   {80, makeFile, Corpus.text},
	"fixed":  {4096, makeFile, Corpus.words},
	"points": {pointNumbers * 4, makeFile, Corpus.points},
	"tree":   {4096, makeTree, Corpus.files},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "makedata:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("use makedata datum|lmdb|lines|keyed|text|fixed|points|tree -n N -o PATH")
	}
	k, ok := kinds[args[0]]
	if !ok {
		return fmt.Errorf("no kind %q: use datum, lmdb, lines, keyed, text, fixed, points or tree", args[0])
	}
	var c Corpus
	var out, checksums, keys string
	flags := flag.NewFlagSet("makedata "+args[0], flag.ExitOnError)
	flags.IntVar(&c.N, "n", 1000, "how many records")
	flags.IntVar(&c.Size, "size", k.size, "bytes of a record (lines, tree: on the mean)")
	flags.IntVar(&c.MaxSize, "max-size", 0, "lmdb: sizes vary from -size up to this")
	flags.IntVar(&c.Side, "side", 32, "datum: height and width of an image")
	flags.Uint64Var(&c.Seed, "seed", 0, "other content for another seed")
	flags.BoolVar(&c.Scattered, "random-order", false, "lmdb, datum: insert in random order, so that neighbours lie apart")
	flags.IntVar(&c.Skew, "skew", 0, "keyed: of 100 keys 99 are in the first of so many parts, by XXH64")
	flags.StringVar(&out, "o", "", "where to put the data (must not exist)")
	flags.StringVar(&checksums, "checksums", "", "file for the XXH64 of every record")
	flags.StringVar(&keys, "keys", "", "lmdb, datum, tree: file for the keys, one a line")
	flags.Parse(args[1:])
	if err := check(c, out, flags.Args()); err != nil {
		return err
	}
	return write(args[0], k, c, out, checksums, keys)
}

func check(c Corpus, out string, rest []string) error {
	switch {
	case len(rest) != 0:
		return fmt.Errorf("unexpected argument %q", rest[0])
	case out == "":
		return errors.New("say where with -o")
	case c.N < 0 || c.Size < 0 || c.Side < 1:
		return errors.New("-n, -size and -side must not be negative")
	}
	if _, err := os.Lstat(out); err == nil {
		return fmt.Errorf("%s exists already: remove it or use another -o", out)
	}
	return nil
}

func write(name string, k kind, c Corpus, out, checksums, keys string) (err error) {
	sums, err := newList(checksums)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, sums.close()) }()
	names, err := newList(keys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, names.close()) }()

	start, records, bytes := time.Now(), 0, int64(0)
	err = k.make(k.corpus(c), out, func(key, value []byte) error {
		records++
		bytes += int64(len(value))
		names.printf("%s\n", key)
		if sums.w != nil {
			sums.printf("%016x\n", xxhash.Sum64(value))
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Printf("makedata kind=%s records=%d bytes=%d seed=%d seconds=%.2f path=%s\n",
		name, records, bytes, c.Seed, time.Since(start).Seconds(), out)
	return nil
}

// A list is a text file that may be absent.
type list struct {
	f *os.File
	w *bufio.Writer
}

func newList(path string) (list, error) {
	if path == "" {
		return list{}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return list{}, err
	}
	return list{f, bufio.NewWriterSize(f, 1<<20)}, nil
}

func (l list) printf(format string, args ...any) {
	if l.w != nil {
		fmt.Fprintf(l.w, format, args...) // an error stays in w until Flush
	}
}

func (l list) close() error {
	if l.w == nil {
		return nil
	}
	return errors.Join(l.w.Flush(), l.f.Close())
}

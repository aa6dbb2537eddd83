package main

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// perTxn is the records of one transaction, as in Caffe's convert_imageset.
const perTxn = 1000

// makeLMDB makes a database of one directory. Nothing is synced until the end.
func makeLMDB(c Corpus, out string, made func(key, value []byte) error) (err error) {
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	env, err := lmdb.NewEnv()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, env.Close()) }()
	// Pages are half full at worst, and a value that has pages of its own
	// wastes less than one.
	largest := int64(max(c.Size, c.MaxSize, 3*c.Side*c.Side) + 8192)
	if err := env.SetMapSize(int64(c.N)*2*largest + 64<<20); err != nil {
		return err
	}
	if err := env.Open(out, lmdb.NoSync, 0o644); err != nil {
		return err
	}
	for from := 0; from < c.N; from += perTxn {
		to := min(c.N, from+perTxn)
		err := env.Update(func(txn *lmdb.Txn) error { return putRange(txn, c, from, to) })
		if err != nil {
			return err
		}
	}
	if err := env.Sync(true); err != nil {
		return err
	}
	return eachRecord(c, made)
}

// putRange puts records from to to of the insertion order.
func putRange(txn *lmdb.Txn, c Corpus, from, to int) error {
	db, err := txn.OpenRoot(0)
	if err != nil {
		return err
	}
	var flags uint = lmdb.Append
	if c.Scattered {
		flags = 0
	}
	var key, value []byte
	for position := from; position < to; position++ {
		i := c.insertion(position)
		key, value = c.Key(key[:0], i), c.Value(value[:0], i)
		if err := txn.Put(db, key, value, flags); err != nil {
			return err
		}
	}
	return nil
}

// insertion is the record that is put at a position: its own, or that of a
// permutation of the indexes (affine, by a multiplier prime to N).
func (c *Corpus) insertion(position int) int {
	if !c.Scattered {
		return position
	}
	n := uint64(c.N)
	a := mix(c.Seed+1) % (1 << 31)
	for gcd(a, n) != 1 {
		a++
	}
	return int((a%n*uint64(position) + mix(c.Seed+2)%n) % n)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func eachRecord(c Corpus, made func(key, value []byte) error) error {
	var key, value []byte
	for i := range c.N {
		key, value = c.Key(key[:0], i), c.Value(value[:0], i)
		if err := made(key, value); err != nil {
			return err
		}
	}
	return nil
}

// makeFile makes one file of all records, back to back.
func makeFile(c Corpus, out string, made func(key, value []byte) error) error {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = eachRecord(c, func(key, value []byte) error {
		w.Write(value) // an error stays in w until Flush
		return made(key, value)
	})
	return errors.Join(err, w.Flush(), f.Sync(), f.Close())
}

// makeTree makes a file for every record.
func makeTree(c Corpus, out string, made func(key, value []byte) error) error {
	if err := os.Mkdir(out, 0o755); err != nil {
		return err
	}
	return eachRecord(c, func(key, value []byte) error {
		path := filepath.Join(out, string(key))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, value, 0o644); err != nil {
			return err
		}
		return made(key, value)
	})
}

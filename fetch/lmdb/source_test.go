package lmdb_test

import (
	"os"
	"path/filepath"
	"testing"

	clib "github.com/bmatsuo/lmdb-go/lmdb"

	"rankfs/fetch"
	"rankfs/fetch/lmdb"
	"rankfs/test/sourcetest"
)

func TestSource(t *testing.T) {
	for name, held := range map[string]bool{"held": true, "watched": false} {
		t.Run(name, func(t *testing.T) {
			sourcetest.Run(t, func(t *testing.T) sourcetest.Fixture { return fixture(t, held) })
		})
	}
}

func fixture(t *testing.T, held bool) sourcetest.Fixture {
	path, holds := t.TempDir(), (*lmdb.Holds)(nil)
	records := numbered(300, 8, func(i int) int { return i * i % 9000 })
	makeDB(t, path, "", 0, records)
	var values [][]byte
	for _, r := range records {
		values = append(values, r.value)
	}
	replace := sourcetest.Change{Name: "another file", Do: func() error {
		other := t.TempDir()
		makeDB(t, other, "", 0, numbered(300, 8, fixed(100)))
		return os.Rename(filepath.Join(other, "data.mdb"), filepath.Join(path, "data.mdb"))
	}}
	shrink := sourcetest.Change{Name: "truncation", Do: func() error {
		return os.Truncate(filepath.Join(path, "data.mdb"), 8192)
	}}
	changes := []sourcetest.Change{replace, shrink}
	if held {
		holds = new(lmdb.Holds)
	} else {
		changes = append(changes, sourcetest.Change{Name: "commit", Do: func() error {
			update(t, path, 0, func(txn *clib.Txn) error {
				dbi, err := txn.OpenRoot(0)
				if err != nil {
					return err
				}
				return txn.Put(dbi, records[0].key, []byte("other"), 0)
			})
			return nil
		}})
	}
	return sourcetest.Fixture{
		Open:    func() (fetch.Source, error) { return lmdb.Open(path, "", holds) },
		Records: values,
		Changes: changes,
	}
}

// What is made from the records is kept by the fingerprint, so two databases of
// one file must not have the same.
func TestDatabasesHaveFingerprints(t *testing.T) {
	path := t.TempDir()
	seen := make(map[string]string)
	for _, db := range []string{"a", "b"} {
		makeDB(t, path, db, 0, numbered(10, 8, fixed(100)))
	}
	for _, db := range []string{"", "a", "b"} {
		src, err := lmdb.Open(path, db, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		now, err := src.Fingerprint(t.Context())
		if other, twice := seen[now]; err != nil || twice {
			t.Errorf("%q has the fingerprint of %q: %s, %v", db, other, now, err)
		}
		seen[now] = db
	}
}

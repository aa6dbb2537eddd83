package pack_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"rankfs/cache/pack"
)

// What a cache does with slabs that are to be packed: a chooser for each
// dataset sees each of them, and says how the next ones are packed.
func Example() {
	chooser, err := pack.NewChooser(pack.ChooserConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	network := pack.Setting{Memory: 8 << 30, Dataset: 32 << 30, Below: 20 * time.Millisecond, Uses: 3}
	store, err := pack.New(pack.Config{Bytes: 1 << 30})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	slabs := map[string][]byte{
		"text":  bytes.Repeat([]byte("rank 3 has read batch 17, which is next?\n"), 100_000),
		"noise": plainNoise(4 << 20),
	}
	for _, key := range []string{"text", "noise"} {
		plain, name := slabs[key], pack.Name{}
		copy(name[:], key)
		if measure, err := chooser.Offer(plain); err != nil {
			fmt.Println(err)
		} else if err := measure(); err != nil { // once it is due, as the first few are
			fmt.Println(err)
		}
		id, real, err := store.Put(context.Background(), name, plain, chooser.Choose(network))
		if errors.Is(err, pack.ErrNoGain) {
			fmt.Println(key, "stays as it is")
			continue
		}
		if err != nil {
			fmt.Println(err)
		}
		slab := make([]byte, len(plain)) // a mapped file, in a cache
		err = store.Get(id, name, slab)
		fmt.Println(key, "is smaller:", real < int64(len(plain))/2, "and comes back:", err == nil && bytes.Equal(slab, plain))
		store.Drop(id)
	}
	fmt.Println(store.Stats().Used, "bytes are left")
	// Output:
	// text is smaller: true and comes back: true
	// noise stays as it is
	// 0 bytes are left
}

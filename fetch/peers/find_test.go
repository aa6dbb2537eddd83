package peers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rankfs/fetch/peers"
	"rankfs/fetch/splits"
	"rankfs/fetch/uri"
	"rankfs/meta"
	"rankfs/meta/wire"
	"rankfs/test/wiretest"
)

// The calls by which a node is asked to find something. The release before knows the first.
const (
	inHDFS = 3
	inAny  = 4
)

// keys is a source of ranges of a hundred keys, from one on. The requests of two such sources
// say the same.
type keys struct {
	from   uint64
	begin  chan struct{} // before it is closed none is read; nil: at once
	looked atomic.Int64
}

func (k *keys) Find(ctx context.Context, split int, w *splits.Findings) error {
	if k.begin != nil {
		select {
		case <-k.begin:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	k.looked.Add(1)
	for i := range uint64(100) {
		w.Put(k.from + uint64(100*split) + i)
	}
	return nil
}

func (k *keys) Request(split int) ([]byte, error) {
	return strconv.AppendInt(nil, int64(split), 10), nil
}

func (k *keys) Check(split int, found *splits.Findings) error {
	for i := range uint64(100) {
		key, _, err := found.Next()
		if want := k.from + uint64(100*split) + i; err == nil && key != want {
			err = fmt.Errorf("key %d %w: want %d", key, meta.ErrCorrupt, want)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// look is a splits.Look.
func (k *keys) look(ctx context.Context, request []byte, w *splits.Findings) error {
	split, err := strconv.Atoi(string(request))
	if err != nil {
		return err
	}
	return k.Find(ctx, split, w)
}

// scan looks through keys from one on with the help of a node, and returns why that did not
// look through some. Nothing is read here before the node has, or has not.
func scan(t *testing.T, node *client, scheme string, from uint64) (missed []error) {
	t.Helper()
	here := &keys{from: from, begin: make(chan struct{})}
	begin := sync.OnceFunc(func() { close(here.begin) })
	var lock sync.Mutex
	s := splits.Scan{
		Source: here, Scheme: scheme, Hosts: make([][]string, 10*runtime.NumCPU()), Known: func(int) bool { return false },
		Here: "here", Kept: splits.NewStore(t.TempDir(), scheme, "1"),
		Helpers: []splits.Helper{{Host: "there", Find: func(ctx context.Context, scheme string, request []byte, w io.Writer) error {
			err := node.Find(ctx, "there", scheme, request, w)
			if err == nil {
				begin()
			}
			return err
		}}},
		Missed: func(_ int, _ string, slow bool, cause error) {
			lock.Lock()
			defer lock.Unlock()
			if !slow && !errors.Is(cause, meta.ErrBusy) {
				missed = append(missed, cause)
				begin()
			}
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := s.Each(ctx, func(split int, found *splits.Findings) error { return here.Check(split, found) }); err != nil {
		t.Errorf("%s: %v", scheme, err)
	}
	return missed
}

// A node knows by the scheme of which of its sources a request is. One that does not know the
// scheme, or no schemes at all, takes it for none of another source: it says why not, and the
// node that asks looks through the split itself.
func TestRequestsOfTwoSources(t *testing.T) {
	for _, test := range []struct {
		name    string
		knows   []string
		call    uint8 // the last that it knows
		refuses string
	}{
		{"it has both", []string{uri.HDFS, "keys"}, inAny, ""},
		{"it has HDFS alone", []string{uri.HDFS}, inAny,
			`sources of the scheme "keys" for others: its release is older than that of the node that asks; upgrade it`},
		{"it is of a release without schemes", []string{uri.HDFS}, inHDFS, "its release is older than the one that asks"},
	} {
		for _, scheme := range []string{uri.HDFS, "keys"} {
			t.Run(test.name+", asked for "+scheme, func(t *testing.T) {
				sources := map[string]*keys{uri.HDFS: {}, "keys": {from: 1 << 40}}
				looks := make(map[string]splits.Look)
				for _, scheme := range test.knows {
					looks[scheme] = sources[scheme].look
				}
				calls := peers.FindFor(splits.NewFinder("", peers.MaxFound, looks).Find)
				maps.DeleteFunc(calls, func(number uint8, _ wire.Call) bool { return number > test.call })
				l, dial := wiretest.Networks[0].Listen(t)
				wiretest.Serve(t, l, calls, nil, wire.Limits{})
				missed := scan(t, newClient(t, dial, wire.Config{}), scheme, sources[scheme].from)
				helps := slices.Contains(test.knows, scheme)
				for of, s := range sources {
					if n := s.looked.Load(); (n > 0) != (helps && of == scheme) {
						t.Errorf("it looks through %d splits of %s", n, of)
					}
				}
				if (len(missed) == 0) != helps {
					t.Errorf("it does not look through some: %v", errors.Join(missed...))
				}
				for _, err := range missed {
					if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), test.refuses) {
						t.Errorf("it refuses with: %v; want %s", err, test.refuses)
					}
				}
			})
		}
	}
}

// Nodes of several releases ask each other: requests keep their form.
func TestFormOfRequestsToFind(t *testing.T) {
	for _, test := range []struct {
		scheme, what string
		call         uint8
		body         string
	}{
		{uri.HDFS, `{"path":"/f"}`, inHDFS, `{"path":"/f"}`},
		{uri.HDFS, "keys\n7", inHDFS, "keys\n7"},
		{"keys", "7", inAny, "keys\n7"},
		{"keys", "7\n8\n", inAny, "keys\n7\n8\n"},
	} {
		var asked, found string
		calls := peers.FindFor(func(_ context.Context, scheme string, what []byte) (*os.File, int64, error) {
			found = scheme + " " + string(what)
			return nil, 0, meta.ErrBusy
		})
		for number, call := range calls {
			calls[number] = func(ctx context.Context, q wire.Request, a wire.Answer) error {
				asked = fmt.Sprint(q.Call, " ", string(q.Body))
				return call(ctx, q, a)
			}
		}
		l, dial := wiretest.Networks[0].Listen(t)
		wiretest.Serve(t, l, calls, nil, wire.Limits{})
		err := newClient(t, dial, wire.Config{}).Find(t.Context(), "n", test.scheme, []byte(test.what), io.Discard)
		if want := fmt.Sprint(test.call, " ", test.body); !errors.Is(err, meta.ErrBusy) || asked != want {
			t.Errorf("%s %q is asked for as %q, want %q; %v", test.scheme, test.what, asked, want, err)
		}
		if want := test.scheme + " " + test.what; found != want {
			t.Errorf("%q is taken for %q, want %q", asked, found, want)
		}
	}
}

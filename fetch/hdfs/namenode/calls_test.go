package namenode_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// client is of one namenode that answers so.
func client(t testing.TB, answer func(*asked)) *namenode.Client {
	f := &fake{hosts: map[string]func(*asked){"a:1": answer}}
	return f.connected(t, namenode.Config{Addresses: []string{"a:1"}})
}

func TestStat(t *testing.T) {
	changed := func(name string, size uint64, set set) proto.Message {
		m := file(name, size, nil)
		for k, v := range set {
			if sub, ok := v.(proto.Message); ok {
				v = sub.ProtoReflect()
			}
			r := m.ProtoReflect()
			r.Set(r.Descriptor().Fields().ByName(k), protoreflect.ValueOf(v))
		}
		return m
	}
	code := func(set set) proto.Message { return made("hdfs.ErasureCodingPolicyProto", set) }
	plain := namenode.Status{Size: 5, ModTime: time.UnixMilli(1_700_000_000_123), FileID: 16386}
	with := func(change func(*namenode.Status)) namenode.Status {
		st := plain
		change(&st)
		return st
	}
	rows := []struct {
		name string
		fs   proto.Message // nil: there is none
		want namenode.Status
		says string
		is   error
	}{
		{name: "file", fs: file("", 5, nil), want: plain},
		{name: "directory", fs: directory(""), want: with(func(s *namenode.Status) { s.Dir, s.Size = true, 0 })},
		{name: "link", fs: changed("", 5, set{"fileType": protoreflect.EnumNumber(3), "symlink": []byte("/t")}),
			want: with(func(s *namenode.Status) { s.Link = "/t" })},
		{name: "encrypted", fs: changed("", 5, set{"flags": uint32(2)}), want: with(func(s *namenode.Status) { s.Encrypted = true })},
		{name: "erasure code", fs: changed("", 5, set{"ecPolicy": code(set{"id": uint32(65), "name": "RS-4-2-512k"})}),
			want: with(func(s *namenode.Status) { s.ErasureCode = "RS-4-2-512k" })},
		{name: "erasure code by number", fs: changed("", 5, set{"ecPolicy": code(set{"id": uint32(2)})}),
			want: with(func(s *namenode.Status) { s.ErasureCode = "RS-3-2-1024k" })},
		{name: "erasure code without a name", fs: changed("", 5, set{"ecPolicy": code(set{"id": uint32(99)})}),
			want: with(func(s *namenode.Status) { s.ErasureCode = "policy 99" })},
		{name: "nothing", says: `namenode a:1: getFileInfo "/x": does not exist`, is: meta.ErrNotExist},
		{name: "negative size", fs: file("", 1<<63, nil), says: "size", is: meta.ErrCorrupt},
		{name: "name with a slash", fs: file("../etc", 5, nil), says: `name "../etc"`, is: meta.ErrCorrupt},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := client(t, func(a *asked) {
				if r.fs == nil {
					a.reply(nil)
				} else {
					a.reply(set{"fs": r.fs})
				}
			})
			got, err := c.Stat(t.Context(), "/x")
			if r.is != nil {
				holds(t, err, []string{"namenode a:1: getFileInfo \"/x\": ", r.says}, []error{r.is})
			} else if err != nil || got != r.want {
				t.Errorf("got %+v, %v; want %+v", got, err, r.want)
			}
		})
	}
}

func TestExceptions(t *testing.T) {
	const ipc, hdfs, security = "org.apache.hadoop.ipc.", "org.apache.hadoop.hdfs.", "org.apache.hadoop.security."
	rows := []struct {
		class, text string
		fatal       bool
		says        []string
		is          error
	}{
		{class: "java.io.FileNotFoundException", text: "File does not exist: /x", is: meta.ErrNotExist},
		{class: security + "AccessControlException", text: "Permission denied: user=alice, access=READ_EXECUTE",
			says: []string{`permission denied for user "alice"`, "access=READ_EXECUTE", "setfacl -m user:alice:r-x /x"}, is: syscall.EACCES},
		{class: security + "AccessControlException", text: `Permission denied: user=alice, access=EXECUTE, inode="/":root:supergroup:drwx------`,
			says: []string{"setfacl -m user:alice:r-x /'"}, is: syscall.EACCES},
		{class: security + "authorize.AuthorizationException", text: "User: alice is not allowed to impersonate bob", fatal: true,
			says: []string{"not allowed to impersonate bob; act for another user, or none, or have", "hadoop.proxyuser.NAME.users"}, is: syscall.EACCES},
		{class: security + "authorize.AuthorizationException", text: "Unauthorized connection for super-user: alice from IP: 10.0.0.1", fatal: true,
			says: []string{"from IP: 10.0.0.1; act for another user", "hadoop.proxyuser.NAME.hosts"}, is: syscall.EACCES},
		{class: security + "authorize.AuthorizationException", text: "User alice is not authorized for protocol", fatal: true,
			says: []string{"not authorized for protocol"}, is: syscall.EACCES},
		{class: security + "AccessControlException", text: "SIMPLE authentication is not enabled.  Available:[TOKEN, KERBEROS]", fatal: true,
			says: []string{"wants Kerberos; give a keytab"}, is: syscall.EACCES},
		{class: hdfs + "server.namenode.SafeModeException", text: "Name node is in safe mode.",
			says: []string{"namenode is not ready: Name node is in safe mode.; wait"}, is: namenode.ErrSafeMode},
		{class: ipc + "RetriableException", text: hdfs + "server.namenode.SafeModeException: Zero blocklocations for /x.",
			says: []string{"Zero blocklocations"}, is: namenode.ErrSafeMode},
		{class: "org.apache.hadoop.fs.InvalidPathException", text: "Invalid path name", is: meta.ErrInvalid},
		{class: hdfs + "protocol.UnresolvedPathException", text: "/x", says: []string{"symbolic link"}, is: meta.ErrInvalid},
		{class: "java.lang.NullPointerException", text: "null\n\tat java.lang.Object", says: []string{`"/x": NullPointerException: null`}},
		{class: "A\x1b[31m", text: "b\x00\x7f" + strings.Repeat("x", 1000), says: []string{"A [31m: b  xxx"}},
		{says: []string{"an error without a name"}},
	}
	for _, r := range rows {
		t.Run(r.class, func(t *testing.T) {
			c := client(t, func(a *asked) {
				if r.fatal {
					a.fatal(r.class, r.text)
				} else {
					a.fail(r.class, r.text)
				}
			})
			_, err := c.Stat(t.Context(), "/x")
			holds(t, err, append(r.says, `namenode a:1: getFileInfo "/x": `), nil)
			if r.is != nil && !errors.Is(err, r.is) {
				t.Errorf("%v; want it to be %q", err, r.is)
			}
			if len(err.Error()) > 600 || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Errorf("not fit to print: %q", err)
			}
		})
	}
}

// An error names who said so, not all who might have been asked.
func TestWhoAnswered(t *testing.T) {
	f := &fake{hosts: map[string]func(*asked){"a:1": standby, "b:1": func(a *asked) { a.reply(nil) }}}
	c := f.connected(t, namenode.Config{Addresses: []string{"a:1", "b:1"}})
	_, stat := c.Stat(t.Context(), "/x")
	_, locate := c.Locate(t.Context(), "/x", 0, 1)
	list := c.List(t.Context(), "/x", false, nil)
	for _, err := range []error{stat, locate, list} {
		if !errors.Is(err, meta.ErrNotExist) || !strings.HasPrefix(err.Error(), "namenode b:1: get") {
			t.Error(err)
		}
	}
}

// tree answers listings and stats of directories, some entries a page.
func tree(perPage int, dirs map[string][]proto.Message) func(*asked) {
	return func(a *asked) {
		src := a.arg("src").String()
		all, found := dirs[src]
		switch {
		case a.method == "getFileInfo":
			dir, name := src[:strings.LastIndex(src, "/")], src[strings.LastIndex(src, "/")+1:]
			for _, m := range dirs[max(dir, "/")] {
				if string(get(m, "path").Bytes()) == name {
					a.reply(set{"fs": m})
					return
				}
			}
			a.reply(nil)
			return
		case !found:
			a.reply(nil)
			return
		}
		after := a.arg("startAfter").Bytes()
		i := sort.Search(len(all), func(i int) bool { return bytes.Compare(get(all[i], "path").Bytes(), after) > 0 })
		if len(after) == 0 {
			i = 0
		}
		n := min(perPage, len(all)-i)
		a.reply(set{"dirList": made("hdfs.DirectoryListingProto", set{
			"partialListing": all[i : i+n], "remainingEntries": uint32(len(all) - i - n),
		})})
	}
}

func TestList(t *testing.T) {
	var many []proto.Message
	var names []string
	for i := range 25 {
		names = append(names, fmt.Sprintf("f%02d", i))
		many = append(many, file(names[i], uint64(i)*blockSize/2, located(uint64(i)*blockSize/2, 0, math.MaxInt64)))
	}
	rows := []struct {
		name string
		page int
		of   []proto.Message
		want []string
	}{
		{"one page", 100, many, names},
		{"pages", 10, many, names},
		{"full last page", 5, many, names},
		{"one by one", 1, many, names},
		{"empty", 10, nil, nil},
		{"itself", 10, []proto.Message{file("", 9, located(9, 0, 9))}, []string{""}},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := client(t, tree(r.page, map[string][]proto.Message{"/d": r.of}))
			var got []string
			err := c.List(t.Context(), "/d", true, func(st namenode.Status) error {
				got = append(got, st.Name)
				if want := int((st.Size + blockSize - 1) / blockSize); st.Blocks == nil || len(st.Blocks.Blocks) != want {
					t.Errorf("%s of %d bytes: blocks %+v", st.Name, st.Size, st.Blocks)
				}
				return nil
			})
			if err != nil || !slices.Equal(got, r.want) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestListEnds(t *testing.T) {
	of := map[string][]proto.Message{"/d": {file("a", 1, nil), file("b", 1, nil), file("c", 1, nil)}}
	stop := errors.New("enough")
	c := client(t, tree(1, of))
	seen := 0
	err := c.List(t.Context(), "/d", false, func(namenode.Status) error { seen++; return stop })
	if err != stop || seen != 1 {
		t.Errorf("%v after %d", err, seen)
	}
	err = c.List(t.Context(), "/nowhere", false, func(namenode.Status) error { return nil })
	holds(t, err, []string{`getListing "/nowhere": does not exist`}, []error{meta.ErrNotExist})
}

// A namenode that makes no sense is told so, and the call ends.
func TestHostileListing(t *testing.T) {
	list := func(left uint32, of ...proto.Message) func(*asked) {
		return func(a *asked) {
			a.reply(set{"dirList": made("hdfs.DirectoryListingProto", set{"partialListing": of, "remainingEntries": left})})
		}
	}
	blocks := func(size uint64, of ...proto.Message) proto.Message {
		m := located(size, 0, 0).ProtoReflect()
		l := m.Mutable(m.Descriptor().Fields().ByName("blocks")).List()
		for _, b := range of {
			l.Append(protoreflect.ValueOf(b.ProtoReflect()))
		}
		return m.Interface()
	}
	rows := []struct {
		name   string
		answer func(*asked)
		says   string
	}{
		{"never ends", list(1, file("a", 1, nil)), "does not get on"},
		{"nothing, and more", list(1), "does not get on"},
		{"dot", list(0, file(".", 1, nil)), `name "."`},
		{"up", list(0, file("..", 1, nil)), `name ".."`},
		{"path", list(0, file("a/b", 1, nil)), `name "a/b"`},
		{"nul", list(0, file("a\x00", 1, nil)), `name "a\x00"`},
		{"huge block", list(0, file("a", 10, blocks(10, locatedBlock(0, 1<<63)))), "bytes 0+9223372036854775808"},
		{"far block", list(0, file("a", 10, blocks(10, locatedBlock(1<<63, 10)))), "bytes 9223372036854775808+10"},
		{"gap", list(0, file("a", 20, blocks(20, locatedBlock(0, 10), locatedBlock(12, 8)))), "it has one at 12+8, but 10 is due"},
		{"late", list(0, file("a", 20, blocks(20, locatedBlock(10, 10)))), "it has one at 10+10, but 0 is due"},
		{"short", list(0, file("a", 20, blocks(20, locatedBlock(0, 10)))), "ends at 10 of 20"},
		{"empty block", list(0, file("a", 20, blocks(20, locatedBlock(0, 0)))), "it has one at 0+0"},
		{"file of 2^63", list(0, file("a", 20, blocks(1<<63))), "file of 9223372036854775808 bytes"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := client(t, r.answer)
			err := c.List(t.Context(), "/d", true, func(namenode.Status) error { return nil })
			holds(t, err, []string{r.says, `namenode a:1: getListing "/d": `}, []error{meta.ErrCorrupt})
		})
	}
}

func TestLocate(t *testing.T) {
	const size = 3*blockSize + 5
	rows := []struct {
		name      string
		size      uint64
		off, n    int64
		want, end int64 // of blocks
		calls     int
	}{
		{"all", size, 0, size, 0, size, 1},
		{"all and more", size, 0, math.MaxInt64, 0, size, 1},
		{"inside one", size, blockSize + 1, 2, blockSize, 2 * blockSize, 1},
		{"across", size, blockSize - 1, 2, 0, 2 * blockSize, 1},
		{"tail", size, size - 1, 1, 3 * blockSize, size, 1},
		{"behind", size, size, 100, 0, 0, 1},
		{"far behind", size, math.MaxInt64, math.MaxInt64, 0, 0, 1},
		{"empty file", 0, 0, 100, 0, 0, 1},
		{"huge", 200 << 30, 5, math.MaxInt64, 0, 200 << 30, 4},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			calls := 0
			c := client(t, func(a *asked) {
				calls++
				off, n := a.arg("offset").Uint(), a.arg("length").Uint()
				a.reply(set{"locations": located(r.size, off, off+n)})
			})
			got, err := c.Locate(t.Context(), "/f", r.off, r.n)
			if err != nil {
				t.Fatal(err)
			}
			if calls != r.calls || got.Size != int64(r.size) {
				t.Errorf("%d calls, size %d", calls, got.Size)
			}
			at := r.want
			for _, b := range got.Blocks {
				if b.Off != at {
					t.Fatalf("block at %d, want %d", b.Off, at)
				}
				at += b.Size
			}
			if at != r.end {
				t.Errorf("blocks end at %d, want %d", at, r.end)
			}
		})
	}
}

func TestBlock(t *testing.T) {
	c := client(t, func(a *asked) { a.reply(set{"locations": located(5, 0, 5)}) })
	got, err := c.Locate(t.Context(), "/f", 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	b := got.Blocks[0]
	if b.Pool != "BP-1" || b.ID != 1073741825 || b.Stamp != 1001 || len(b.Replicas) != 2 {
		t.Errorf("got %+v", b)
	}
	if want := (namenode.Replica{Host: "dn2", Addr: "10.0.0.2:9866", ID: "uuid-2", Rack: "/rack-1"}); b.Replicas[1] != want {
		t.Errorf("got %+v", b.Replicas[1])
	}
	if !proto.Equal(b.Message, locatedBlock(0, 5)) {
		t.Errorf("message %v", b.Message)
	}
}

// The block that a client is writing is left out, whatever the namenode says of it.
func TestOpenFile(t *testing.T) {
	rows := []struct {
		name  string
		size  uint64
		sizes []uint64 // of the blocks
		want  int
		is    error
	}{
		{name: "nothing yet", sizes: []uint64{}},
		{name: "begun", sizes: []uint64{0}},
		{name: "first, with bytes", sizes: []uint64{100}},
		{name: "second", size: 100, sizes: []uint64{100, 0}, want: 1},
		{name: "second, with bytes", size: 100, sizes: []uint64{100, 7}, want: 1},
		{name: "a whole one missing", size: 200, sizes: []uint64{100, 0}, is: meta.ErrCorrupt},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			at, blocks := uint64(0), []proto.Message{}
			for _, n := range r.sizes {
				blocks = append(blocks, locatedBlock(at, n))
				at += n
			}
			c := client(t, func(a *asked) {
				a.reply(set{"locations": made("hdfs.LocatedBlocksProto", set{
					"fileLength": r.size, "blocks": blocks, "underConstruction": true, "isLastBlockComplete": false,
				})})
			})
			got, err := c.Locate(t.Context(), "/f", 0, math.MaxInt64)
			if r.is != nil {
				holds(t, err, []string{"ends at 100 of 200"}, []error{r.is})
			} else if err != nil || !got.Open || len(got.Blocks) != r.want || got.Size != int64(r.size) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// A file that changed between two pages is not put together from both.
func TestLocateChanged(t *testing.T) {
	size := uint64(200 << 30)
	c := client(t, func(a *asked) {
		off, n := a.arg("offset").Uint(), a.arg("length").Uint()
		a.reply(set{"locations": located(size, off, off+n)})
		size += blockSize
	})
	_, err := c.Locate(t.Context(), "/f", 0, math.MaxInt64)
	holds(t, err, []string{`getBlockLocations "/f": `, "went from"}, []error{meta.ErrStale})
}

func TestPaths(t *testing.T) {
	c := client(t, func(a *asked) { t.Errorf("%q was asked for", a.arg("src")) })
	for _, name := range []string{"", "x", "/x/", "//x", "/x/../y", "/./x", "/a\x00b", "/\xff", "/" + strings.Repeat("x", 8000)} {
		_, err := c.Stat(t.Context(), name)
		holds(t, err, []string{"HDFS path"}, []error{meta.ErrInvalid})
		_, err = c.Locate(t.Context(), name, 0, 1)
		holds(t, err, nil, []error{meta.ErrInvalid})
		holds(t, c.List(t.Context(), name, false, nil), nil, []error{meta.ErrInvalid})
	}
	_, err := c.Locate(t.Context(), "/x", -1, 1)
	holds(t, err, nil, []error{meta.ErrInvalid})
}

func TestEncryptsData(t *testing.T) {
	key := made("hdfs.DataEncryptionKeyProto", set{"keyId": uint32(3), "blockPoolId": "BP-1", "nonce": []byte("n"),
		"encryptionKey": []byte("k"), "expiryDate": uint64(1_700_000_000_123)})
	c := client(t, func(a *asked) {
		switch a.method {
		case "getServerDefaults":
			a.reply(set{"serverDefaults": made("hdfs.FsServerDefaultsProto", set{"blockSize": uint64(blockSize), "bytesPerChecksum": uint32(512),
				"writePacketSize": uint32(65536), "replication": uint32(3), "fileBufferSize": uint32(4096), "encryptDataTransfer": true})})
		case "getDataEncryptionKey":
			a.reply(set{"dataEncryptionKey": key})
		}
	})
	if encrypts, err := c.EncryptsData(t.Context()); err != nil || !encrypts {
		t.Errorf("got %v, %v", encrypts, err)
	}
	got, until, err := c.EncryptionKey(t.Context())
	if err != nil || !proto.Equal(got, key) || !until.Equal(time.UnixMilli(1_700_000_000_123)) {
		t.Errorf("got %v until %v, %v", got, until, err)
	}
	none := client(t, func(a *asked) { a.reply(nil) })
	if got, _, err := none.EncryptionKey(t.Context()); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

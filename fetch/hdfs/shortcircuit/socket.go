package shortcircuit

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// A socket is where a datanode of this host listens. The client's lock guards its
// suspension, which is that of the last attempt to use it.
type socket struct {
	path string
	suspension
}

// request asks the datanode for a block's files, and tells by which socket.
func (s *socket) request(ctx context.Context, timeout time.Duration, b Block, d *disks) (*File, origin, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, from, err := s.dial(ctx)
	if err != nil {
		return nil, from, err
	}
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	f, err := s.ask(c, b, d)
	return f, from, err
}

// ask asks it by a connection.
func (s *socket) ask(c *net.UnixConn, b Block, d *disks) (*File, error) {
	if _, err := c.Write(request(b)); err != nil {
		return nil, useless("ask %s: %w", s.path, err)
	}
	answer, err := readAnswer(c)
	if err != nil {
		return nil, useless("ask %s: its answer: %w", s.path, err)
	}
	if err := refusal(answer); err != nil {
		return nil, err
	}
	files, err := receive(c, d)
	if err != nil {
		return nil, useless("ask %s: %w", s.path, err)
	}
	f, err := newFile(files, b, d)
	if err != nil {
		return nil, fmt.Errorf("block %d: %w", b.ID, err)
	}
	return f, nil
}

// dial connects to the datanode, if no other user can have replaced its socket. Where
// it cannot, the origin is what it has seen.
func (s *socket) dial(ctx context.Context) (c *net.UnixConn, o origin, err error) {
	o.path = s.path
	st, err := lookAt(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, o, useless("there is no socket %s: is dfs.domain.socket.path the datanode's too, and has it Hadoop's native library?", s.path)
	} else if err != nil {
		return nil, o, useless("socket %s: %w", s.path, err)
	}
	o.was = identityOf(&st)
	if st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		return nil, o, useless("%s is no socket", s.path)
	}
	if err := guarded(filepath.Dir(s.path), st.Uid); err != nil {
		return nil, o, err
	}
	c, err = connect(ctx, s.path)
	if err != nil {
		return nil, o, err
	}
	if err := heldBy(c, st.Uid); err != nil {
		c.Close()
		return nil, o, useless("socket %s: %w", s.path, err)
	}
	return c, o, nil
}

func connect(ctx context.Context, path string) (*net.UnixConn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return c.(*net.UnixConn), nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, useless("no datanode answers: %w: does it run, and has it Hadoop's native library?", err)
	case meta.OutOfFiles(err):
		return nil, useless("ask %s: %w: raise the limit of open files", path, err)
	}
	return nil, useless("no datanode answers: %w", err)
}

// guarded checks the folder of a socket and those above it as Hadoop does: no other
// user may be able to replace the socket by another.
func guarded(dir string, owner uint32) error {
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return useless("folder of the datanode's socket: %w", err)
		}
		st := info.Sys().(*syscall.Stat_t)
		switch mode := info.Mode().Perm(); {
		case mode&0o002 != 0:
			return useless("folder %s of the datanode's socket can be written by all: take that away, or choose another dfs.domain.socket.path", dir)
		case mode&0o020 != 0 && st.Gid != 0:
			return useless("folder %s of the datanode's socket can be written by group %d: take that away, or choose another dfs.domain.socket.path", dir, st.Gid)
		case st.Uid != 0 && st.Uid != owner:
			return useless("folder %s of the datanode's socket belongs to user %d, neither root nor who made the socket: choose another dfs.domain.socket.path", dir, st.Uid)
		}
		if dir == "/" || dir == "." {
			return nil
		}
	}
}

// heldBy reports an error if another than the socket's owner listens at it.
func heldBy(c *net.UnixConn, owner uint32) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var got error
	if err := raw.Control(func(fd uintptr) {
		peer, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if got != nil {
		return os.NewSyscallError("getsockopt", got)
	}
	if peer.Uid != owner && peer.Uid != 0 {
		return fmt.Errorf("user %d listens at it, and user %d made it", peer.Uid, owner)
	}
	return nil
}

const (
	version   = 28 // of data transfer
	operation = 87 // REQUEST_SHORT_CIRCUIT_FDS
)

// request is an OpRequestShortCircuitAccessProto, framed to be sent.
func request(b Block) []byte {
	header := message.New("hdfs.BaseHeaderProto", message.Fields{"block": b.Header})
	if b.Token != nil {
		message.Set(header, "token", b.Token)
	}
	body, err := proto.Marshal(message.New("hdfs.OpRequestShortCircuitAccessProto", message.Fields{"header": header, "maxVersion": uint32(format)}))
	if err != nil {
		panic(fmt.Sprintf("question for block %d: %v", b.ID, err))
	}
	return protowire.AppendBytes(append(binary.BigEndian.AppendUint16(nil, version), operation), body)
}

// maxAnswer is far above some words.
const maxAnswer = 64 << 10

// readAnswer reads a message with its length before it, and not a byte more:
// the files come with the next.
func readAnswer(c net.Conn) (proto.Message, error) {
	size, err := binary.ReadUvarint(byByte{c})
	if err != nil {
		return nil, err
	}
	if size > maxAnswer {
		return nil, fmt.Errorf("it %w: it has %d bytes", meta.ErrCorrupt, size)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(c, b); err != nil {
		return nil, err
	}
	m := message.New("hdfs.BlockOpResponseProto", nil)
	if err := proto.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("it %w: %v", meta.ErrCorrupt, err)
	}
	return m, nil
}

type byByte struct{ io.Reader }

func (r byByte) ReadByte() (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(r, b[:])
	return b[0], err
}

// errToken is the error of a block whose token the datanode does not accept. With
// another token it may pass the same block's files.
var errToken = errors.New("the datanode refuses the block's token")

// refusal is why a datanode passes no files; nil if it does.
func refusal(answer proto.Message) error {
	const success, token, unsupported = 0, 5, 7
	words := message.Get(answer, "message").String()
	switch status := message.Get(answer, "status").Enum(); status {
	case success:
	case token:
		return fmt.Errorf("%w: %s", errToken, words)
	case unsupported:
		return useless("the datanode does not pass files: %s", words)
	default:
		return fmt.Errorf("the datanode does not pass the block's files: status %d: %s", status, words)
	}
	if v := message.Get(answer, "shortCircuitAccessVersion").Uint(); v > format {
		return useless("the datanode's blocks have format %d, and %d is understood", v, format)
	}
	return nil
}

// receive takes two files, which come with one byte.
func receive(c *net.UnixConn, d *disks) (files [2]*os.File, err error) {
	const maxPassed = 8 // more than are sent; surplus files must be closed
	one, space := make([]byte, 1), make([]byte, unix.CmsgSpace(4*maxPassed))
	raw, err := c.SyscallConn()
	if err != nil {
		return files, err
	}
	var n, control, flags int
	var got error
	err = raw.Read(func(fd uintptr) bool {
		n, control, flags, _, got = unix.Recvmsg(int(fd), one, space, unix.MSG_CMSG_CLOEXEC)
		return got != unix.EAGAIN && got != unix.EINTR
	})
	if err = errors.Join(err, os.NewSyscallError("recvmsg", got)); err != nil {
		return files, err
	}
	fds, err := rights(space[:control])
	if err == nil && flags&unix.MSG_CTRUNC != 0 && len(fds) < len(files) {
		err = fmt.Errorf("take the block's files: %w: raise the limit of open files", syscall.EMFILE)
	}
	if err == nil && (n != 1 || flags&unix.MSG_CTRUNC != 0 || len(fds) != len(files)) {
		err = fmt.Errorf("what it passes %w: %d files, where a block has its bytes and its checksums", meta.ErrCorrupt, len(fds))
	}
	if err != nil {
		d.reject(fds)
		return files, err
	}
	for i, fd := range fds {
		files[i] = os.NewFile(uintptr(fd), [...]string{"block", "checksums"}[i])
	}
	return files, nil
}

// rights are the descriptors that came with a message.
func rights(control []byte) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
	for _, m := range messages {
		got, parsed := unix.ParseUnixRights(&m)
		fds, err = append(fds, got...), errors.Join(err, parsed)
	}
	return fds, err
}

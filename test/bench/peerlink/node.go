package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/fetch/peers"
	"rankfs/meta/wire"
)

const (
	total = 256 << 20
	batch = 8 << 20
)

// A slab is memory with records that are equally long.
type slab []byte

func newSlab(size int) (slab, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	return mem, err
}

func (s slab) Gather(_ context.Context, _ peers.ID, runs []peers.Run, emit func([]byte) error) error {
	for _, r := range runs {
		for i := r.First; i < r.First+r.N; i++ {
			if err := emit(s[int(i)**record:][:*record]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s slab) Kept(ctx context.Context, dataset peers.ID, runs []peers.Run, emit func([]byte) error) error {
	return s.Gather(ctx, dataset, runs, emit)
}

func (s slab) File(context.Context, peers.ID) (*os.File, int64, error) {
	return nil, 0, errors.ErrUnsupported
}

// serve answers requests from when it is told that there is a network.
func serve() error {
	in := bufio.NewScanner(os.Stdin)
	if !in.Scan() {
		return in.Err()
	}
	own, err := identity()
	if err != nil {
		return err
	}
	s, err := newSlab(total)
	if err != nil {
		return err
	}
	server, err := wire.NewServer(wire.Limits{}, nil, peers.Calls(s))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", net.JoinHostPort(thereIP, port))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- server.Serve(ctx, tls.NewListener(l, &tls.Config{
			Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS13, DynamicRecordSizingDisabled: true,
		}))
	}()
	fmt.Println("listens")
	in.Scan() // to the end
	cancel()
	return <-done
}

func identity() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// ask fetches total bytes in batches for each order, and answers with the
// bytes per second.
func ask() error {
	// No other host is on this network, so the server need not prove what it is.
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	w := wire.New(func(ctx context.Context, node string) (net.Conn, error) {
		return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", node)
	}, wire.Config{})
	defer w.Close()
	c := peers.New(w, peers.Config{})
	slabs := make([]slab, *streams)
	for i := range slabs {
		var err error
		if slabs[i], err = newSlab(batch); err != nil {
			return err
		}
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		begin := time.Now()
		n, err := fill(c, slabs)
		if err != nil {
			return err
		}
		fmt.Println(float64(n) / time.Since(begin).Seconds())
	}
	return in.Err()
}

// fill fills batches until it has come through all records.
func fill(c *peers.Client, slabs []slab) (bytes int64, err error) {
	var next, filled atomic.Int64
	var work sync.WaitGroup
	errs := make([]error, len(slabs))
	for i, dst := range slabs {
		work.Go(func() {
			for at := int(next.Add(batch)); at <= total && errs[i] == nil; at = int(next.Add(batch)) {
				want, parts := wanted(at-batch, dst)
				errs[i] = c.Gather(context.Background(), net.JoinHostPort(thereIP, port), want, parts)
				filled.Add(int64(len(parts) * *record))
			}
		})
	}
	work.Wait()
	return filled.Load(), errors.Join(errs...)
}

// wanted is the batch at that place of an epoch: records from all over.
func wanted(at int, dst slab) (peers.Want, [][]byte) {
	count, each := total / *record, batch / *record
	w := peers.Want{Runs: make([]peers.Run, each)}
	parts := make([][]byte, each)
	for i := range each {
		w.Runs[i] = peers.Run{First: uint64((at / *record + i) * 7919 % count), N: 1}
		parts[i] = dst[i**record:][:*record]
	}
	return w, parts
}

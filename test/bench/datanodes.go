package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"time"

	"rankfs/test/daemon"
)

const (
	sentFile  = "/bench/64MiB"
	sentSize  = 64 * mib
	sentBlock = mib
)

// sent is how many bytes leave HDFS for one node's epoch, for each of the
// dataset's, as the node has counted them and as datanodes say that they have read
// them: in the source's order, and shuffled where memory holds a quarter of it. It is
// the last epoch: no batches of another one are made ready.
func sent(b *bench) (misses int) {
	h := b.hadoop()
	h.put(sentFile, sentSize, sentBlock)
	for _, c := range []struct{ order, ram string }{{"none", "256MiB"}, {"full", "256MiB"}, {"full", "16MiB"}} {
		received, read := h.epoch(b, c.order, c.ram)
		name := fmt.Sprintf("hdfs, epoch of 64 MiB, order=%s, %s of ram, bytes received / all", c.order, c.ram)
		misses += missed(
			outcome{name: name, values: []float64{received / sentSize}, target: 1.02, atMost: true},
			outcome{name: "the same, bytes that datanodes say they read / all", values: []float64{read / sentSize}, target: 1.02, atMost: true},
		)
	}
	return misses
}

// epoch has a new node read all batches once.
func (h *hadoop) epoch(b *bench, order, ram string) (received, read float64) {
	n := daemon.New(b.on("datanodes"), filepath.Join(b.root, "bin/rankfs"), h.host, "--ram", ram, "--hadoop-conf", h.cluster.Conf())
	n.Start()
	defer n.Stop()
	n.Do("dataset", "create", "d", "--source", fmt.Sprintf("hdfs://%s%s?as=fixed:4096", h.cluster.Nameservice(), sentFile), "--batch", "64", "--order", order)
	before := h.bytesRead()
	n.Must("sh", "-c", fmt.Sprintf("cat %s/datasets/d@epoch=%d/rank-0/batch-?????? >/dev/null", n.Mount(), uint64(math.MaxUint64)))
	var s sourced
	n.Status(&s)
	return s.HDFS.Bytes, h.bytesRead() - before
}

// bytesRead is the bytes that all datanodes have read for clients so far. Their figures
// are up to ten seconds old.
func (h *hadoop) bytesRead() (total float64) {
	const asOf, port = 11 * time.Second, 9864
	time.Sleep(asOf)
	for _, host := range h.cluster.DataNodes() {
		client := http.Client{Timeout: time.Minute, Transport: &http.Transport{DialContext: host.DialContext, DisableKeepAlives: true}}
		answer, err := client.Get(fmt.Sprintf("http://%s:%d/jmx?qry=Hadoop:service=DataNode,name=DataNodeActivity-*", host.Name, port))
		check(err)
		var said struct {
			Beans []struct{ BytesRead *float64 }
		}
		err = json.NewDecoder(answer.Body).Decode(&said)
		answer.Body.Close()
		check(err)
		if len(said.Beans) != 1 || said.Beans[0].BytesRead == nil {
			check(fmt.Errorf("datanode %s tells of %d activities", host.Name, len(said.Beans)))
		}
		total += *said.Beans[0].BytesRead
	}
	return total
}

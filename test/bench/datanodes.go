package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"time"
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
	state, mnt := filepath.Join(b.dir, "hstate"), filepath.Join(b.dir, "hmnt")
	check(os.MkdirAll(mnt, 0o755))
	on := func(format string, args ...any) string {
		cmd := h.host.Command(context.Background(), "sh", "-ec", fmt.Sprintf(format, args...))
		cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+h.cluster.Conf(), "PATH="+filepath.Join(b.root, "bin")+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			check(fmt.Errorf("%w: %s", err, out))
		}
		return string(out)
	}
	on("rankfs mount %s --background --state %s --ram %s", mnt, state, ram)
	defer os.RemoveAll(state)
	defer on("rankfs umount %s", mnt)
	on("rankfs dataset create d --source 'hdfs://%s%s?as=fixed:4096' --batch 64 --order %s", h.cluster.Nameservice(), sentFile, order)
	before := h.bytesRead()
	on("cat %s/datasets/d@epoch=%d/rank-0/batch-?????? >/dev/null", mnt, uint64(math.MaxUint64))
	var s sourced
	check(json.Unmarshal([]byte(on("rankfs status --json")), &s))
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

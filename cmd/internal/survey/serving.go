package survey

import (
	"rankfs/cmd/internal/control"
	"rankfs/fetch/index"
	"rankfs/meta/assign"
	"rankfs/shuffle/plan"
)

// RemoteReads are chunks that are read on hosts which do not hold them.
type remoteReads struct {
	chunks []int32
	reader []int32 // the host of each
}

// Bounds of a survey of the hosts that send chunks: some hundred MiB.
const (
	maxRemoteReads = 1 << 20
	maxServers     = 1 << 15
)

func (f *remoteReads) add(chunk int, host int32) {
	if len(f.chunks) < maxRemoteReads {
		f.chunks, f.reader = append(f.chunks, int32(chunk)), append(f.reader, host)
	}
}

// serving finds out which hosts have to send what is read elsewhere; nil if none has to,
// as far as is known.
func serving(x *index.Index, f *remoteReads, hosts *plan.Hosts, hostOf []int32) (*control.Serving, error) {
	all := withHolders(x, f, hosts)
	if all.Len() > maxServers {
		return nil, nil
	}
	n, sets, of := plan.NewTopologyByRack(x, all), new(assign.Sets), make([]int32, len(f.chunks))
	for i, chunk := range f.chunks {
		var err error
		if of[i], err = sets.Number(n.Holders(int(chunk))); err != nil {
			return nil, err
		}
	}
	planner, err := assign.New(n.Cluster(hostOf), sets)
	if err != nil {
		return nil, err
	}
	from, err := planner.Serve(f.reader, of)
	if err != nil {
		return nil, err
	}
	sends := make([]int64, all.Len())
	for i, host := range from {
		if host >= 0 {
			sends[host] += x.ChunkBytes(int(f.chunks[i]))
		}
	}
	return busiest(all.Names(), sends), nil
}

// withHolders adds to hosts those that hold what is read elsewhere.
func withHolders(x *index.Index, f *remoteReads, hosts *plan.Hosts) *plan.Hosts {
	all := hosts.Clone()
	var held [][]byte
	for _, chunk := range f.chunks {
		held = x.AppendHosts(held[:0], int(chunk))
		for _, name := range held {
			if _, ok := all.Find(string(name)); !ok {
				all.Add(string(name))
			}
		}
	}
	return all
}

func busiest(names []string, sends []int64) *control.Serving {
	v, sum, most := new(control.Serving), int64(0), int64(0)
	for host, bytes := range sends {
		if bytes == 0 {
			continue
		}
		v.Hosts++
		if sum += bytes; bytes > most {
			v.Busiest, most = names[host], bytes
		}
	}
	if v.Hosts == 0 {
		return nil
	}
	v.Share = float64(most) / float64(sum)
	return v
}

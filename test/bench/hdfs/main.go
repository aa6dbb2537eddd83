package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"rankfs/test/cluster"
)

type proc struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(c *exec.Cmd) proc {
	in, err := c.StdinPipe()
	check(err)
	out, err := c.StdoutPipe()
	check(err)
	c.Stderr = os.Stderr
	check(c.Start())
	return proc{in, bufio.NewScanner(out)}
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func (p proc) ask(line string) (a struct {
	Bytes    int64
	Wall     float64
	CPU      float64
	Received int64
	Error    string
}) {
	fmt.Fprintln(p.in, line)
	p.out.Scan()
	check(json.Unmarshal(p.out.Bytes(), &a))
	if a.Error != "" {
		panic(a.Error)
	}
	return a
}

func main() {
	ctx := context.Background()
	c, err := cluster.Open(ctx, "plain")
	check(err)
	defer c.Close()
	h := c.Host("data1")
	client, err := h.HDFS("root")
	check(err)
	if _, err := client.Stat("/bench/1g"); err != nil {
		check(client.MkdirAll("/bench", 0755))
		w, err := client.CreateFile("/bench/1g", 2, 128<<20, 0644)
		check(err)
		buf := make([]byte, 1<<20)
		for i := range buf {
			buf[i] = byte(i * 7)
		}
		for range 1024 {
			_, err := w.Write(buf)
			check(err)
		}
		for w.Close() != nil {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if len(os.Args) > 2 {
		p := h.Command(ctx, "perf", "record", "-e", "cpu-clock", "-F", "4000", "-g", "-o", "/tmp/perf.data", os.Args[1], "-conf", c.Conf(), "-once", `{"path":"rankfs/bench/1g","threads":1}`)
		p.Stdout, p.Stderr = os.Stdout, os.Stderr
		check(p.Run())
		return
	}
	ours := start(h.Command(ctx, os.Args[1], "-conf", c.Conf()))
	theirs := start(h.Java(ctx, "Read"))
	for _, threads := range []int{1, 4} {
		var wall, cpu, ow, tw []float64
		split := ""
		if threads > 1 {
			for i := range 8 {
				if i > 0 {
					split += ","
				}
				split += fmt.Sprintf(`{"path":"/bench/1g","offset":%d,"length":%d}`, i*128<<20, 128<<20)
			}
		} else {
			split = `{"path":"/bench/1g","offset":0,"length":-1}`
		}
		for i := range 8 {
			o := ours.ask(fmt.Sprintf(`{"path":"rankfs/bench/1g","threads":%d}`, threads))
			t := theirs.ask(fmt.Sprintf(`{"ranges":[%s],"threads":%d}`, split, threads))
			if i > 0 {
				wall, cpu = append(wall, t.Wall/o.Wall), append(cpu, o.CPU/t.CPU)
				ow, tw = append(ow, o.Wall), append(tw, t.Wall)
			}
			fmt.Printf("threads %d ours %.3f s %.3f cpu recv %d theirs %.3f s %.3f cpu\n", threads, o.Wall, o.CPU, o.Received, t.Wall, t.CPU)
		}
		slices.Sort(wall)
		slices.Sort(cpu)
		fmt.Printf("threads %d speed ratio %.2f (%.2f-%.2f) cpu ratio %.2f (%.2f-%.2f)\n", threads, wall[3], wall[0], wall[6], cpu[3], cpu[0], cpu[6])
	}
}

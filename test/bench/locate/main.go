// Locate counts the replicas of all blocks in a directory of HDFS.
package main

import (
	"context"
	"fmt"
	"os"

	"rankfs/fetch/hdfs/namenode"
)

func main() {
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "locate:", err)
		os.Exit(1)
	}
}

func run(conf, dir string) error {
	config, err := namenode.FromConf(conf, "")
	if err != nil {
		return err
	}
	c, err := namenode.New(config)
	if err != nil {
		return err
	}
	defer c.Close()
	blocks, replicas := 0, 0
	err = c.List(context.Background(), dir, true, func(st namenode.Status) error {
		for _, b := range st.Blocks.Blocks {
			blocks, replicas = blocks+1, replicas+len(b.Replicas)
		}
		return nil
	})
	fmt.Printf("%d blocks, %d replicas\n", blocks, replicas)
	return err
}

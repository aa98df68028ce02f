package polynym_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymtest"
)

const (
	benchCallers = 256
	benchUsers   = 10_000
)

// BenchmarkResolve measures look-ups of 256 concurrent callers in one process, each with a request
// of its own and together in batches. See the script bench.
func BenchmarkResolve(b *testing.B) {
	users := polynymtest.Start(b, polynymtest.WithArguments("--log", "error"))
	loader := connect(b, users.Address, polynym.WithTimeout(time.Minute))
	var next atomic.Int64
	concurrently(benchCallers, func() {
		for i := next.Add(1); i <= benchUsers; i = next.Add(1) {
			if _, err := createUser(loader, fmt.Sprint("user-", i)); err != nil {
				b.Error(err)
			}
		}
	})
	for _, batching := range []bool{false, true} {
		b.Run(fmt.Sprintf("batching=%v", batching), func(b *testing.B) {
			client := connect(b, users.Address, polynym.WithBatching(batching))
			benchmarkResolve(b, client)
		})
	}
}

func benchmarkResolve(b *testing.B, client *polynym.Client) {
	ctx := context.Background()
	latencies := make([]time.Duration, b.N)
	var next atomic.Int64
	begin := time.Now()
	concurrently(benchCallers, func() {
		for i := next.Add(1) - 1; i < int64(b.N); i = next.Add(1) - 1 {
			sent := time.Now()
			handle := fmt.Sprint("user-", i*7919%benchUsers+1)
			if _, err := client.Resolve(ctx, polynym.Handle(handle)); err != nil {
				b.Error(err)
				return
			}
			latencies[i] = time.Since(sent)
		}
	})
	elapsed := time.Since(begin)
	slices.Sort(latencies)
	b.ReportMetric(float64(b.N)/elapsed.Seconds(), "calls/s")
	b.ReportMetric(float64(latencies[b.N*99/100].Microseconds())/1000, "p99-ms")
	b.ReportMetric(float64(latencies[b.N/2].Microseconds())/1000, "p50-ms")
}

// concurrently runs a function in many goroutines, and waits for all of them.
func concurrently(count int, run func()) {
	var group waitGroup
	for range count {
		group.Go(run)
	}
	group.Wait()
}

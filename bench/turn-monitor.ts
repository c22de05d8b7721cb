// Monitor of the event loop in a measured server, which loads this module first (`--import`). It answers each message with the
// turns since the message before.
import { isMainThread } from 'node:worker_threads'

/** Processor time of one turn in milliseconds: of the main thread, and of all threads. */
export type Turn = { thread: number; process: number }

let turns: Turn[] = []
let [thread, all] = [process.threadCpuUsage(), process.cpuUsage()]

const between = (before: NodeJS.CpuUsage, now: NodeJS.CpuUsage): number =>
  (now.user - before.user + now.system - before.system) / 1000

function endTurn(): void {
  const [threadNow, allNow] = [process.threadCpuUsage(), process.cpuUsage()]
  turns.push({ thread: between(thread, threadNow), process: between(all, allNow) })
  ;[thread, all] = [threadNow, allNow]
  // An immediate runs once in each turn. Without a reference, it does not keep an idle event loop busy.
  setImmediate(endTurn).unref()
}

if (isMainThread && process.send) {
  endTurn()
  process.on('message', () => {
    process.send!(turns)
    turns = []
  })
}

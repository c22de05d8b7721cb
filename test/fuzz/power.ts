// Cuts the power repeatedly during concurrent pushes, on a simulated file system that loses unsynced data. No acknowledged push
// may be lost, and no push may be stored incompletely. It tests the embedded database with a blob folder. To run it by hand:
//   bin/pinfold-node test/fuzz/power.ts --rounds 500 --pushes 20
// It needs FUSE, and the Debian packages python3-fusepy and fuse. With --check it fails if a start after a power cut took more
// than two seconds.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createStorage, project } from '../support/process.ts'
import { killPushes, type PushTally } from '../support/pushes.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '500' },
    pushes: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    check: { type: 'boolean', default: false },
  },
})
delete process.env.PINFOLD_TEST_DATABASE
const mount = mkdtempSync(join(tmpdir(), 'pinfold-power-'))
const power = spawn('/usr/bin/python3', [join(project, 'test/fuzz/power.py'), mount, values.seed], {
  stdio: ['ignore', 'inherit', 'inherit'],
})
const unmount = (): void => {
  power.kill('SIGTERM')
  try {
    execFileSync('fusermount', ['-uz', mount], { stdio: 'ignore' })
  } catch {
    // The folder is already unmounted.
  }
}
process.once('exit', unmount)
for (let tries = 0; !existsSync(join(mount, '.power')); tries++) {
  if (tries > 200 || power.exitCode !== null) throw new Error('the file system cannot be mounted')
  await sleep(50)
}
process.env.TMPDIR = mount
const storage = await createStorage()
// The folder itself is there to begin with; whether the server syncs what it makes in it is what is tried.
writeFileSync(join(mount, '.power', 'sync'), 'x')
let cuts = 0
const forgetful = {
  ...storage,
  async settled() {
    writeFileSync(join(mount, '.power', 'cut'), 'x')
    cuts++
  },
}
const line = ({ sent, acknowledged, cut, happened, blobs }: PushTally) =>
  `${sent} sent, ${acknowledged} acknowledged, ${cut} cut off of which ${happened} had happened, ${blobs} blobs`
console.log(`seed ${values.seed}`)
const starts: number[] = []
const sum = await killPushes(forgetful, Number(values.rounds), Number(values.pushes), (round, tally) => {
  starts.push(tally.startMs)
  console.log(`round ${round}: ${line(tally)}`)
})
starts.sort((a, b) => a - b)
const median = starts[Math.floor(starts.length / 2)]!
console.log(
  `nothing lost in ${cuts} power cuts: ${line(sum)}; starts took ${median.toFixed(0)} ms, at most ${sum.startMs.toFixed(0)} ms`,
)
unmount()
rmdirSync(mount)
if (values.check) assert.ok(sum.startMs <= 2000, 'a start took more than two seconds')

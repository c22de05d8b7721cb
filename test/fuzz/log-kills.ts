// Kills a server while it writes, signs and witnesses a transparency log, and starts it again on the same data. Its witness,
// which is another server, must never see two different histories, and signing must continue. To run it by hand:
//   bin/pinfold-node test/fuzz/log-kills.ts --kills 100 --checkpoints 1000
// It ends when both numbers are reached. With `--litewitness PROGRAM`, that witness also signs each checkpoint. It uses
// PostgreSQL if PINFOLD_TEST_DATABASE names one. The killed process runs only the background jobs, many times a second;
// log-serve-kills.ts kills the server itself.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readConfig } from '#config.ts'
import type { Db } from '#db/sql.ts'
import { answersTo, askBeforeSigning, collectCosignatures } from '#domains/ledger/proofs/cosignatures.service.ts'
import { suspendedOrganizations } from '#domains/ledger/proofs/logs.store.ts'
import { sequenceSome } from '#domains/ledger/proofs/sequence.service.ts'
import { signLogs } from '#domains/ledger/proofs/signing.service.ts'
import { createWitnessing } from '#domains/ledger/proofs/witnessing.ts'
import { type NoteKey, parseVkey, vkeyOf } from '#lib/tlog/notes.ts'
import { parsePolicy } from '#lib/tlog/policy.ts'
import { provedBy } from '#lib/tlog/tag-proof.ts'
import { withoutLease } from '../support/background-jobs.ts'
import { type Pinfold, startPinfold } from '../support/pinfold.ts'
import { cleanEnv, createStorage } from '../support/process.ts'
import { digestOf, plantTag } from '../support/tags.ts'
import { startLitewitness } from './litewitness.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    checkpoints: { type: 'string', default: '1000' },
    litewitness: { type: 'string' },
    child: { type: 'string' },
  },
})
const origin = 'log.example'
type Given = { data: string; database: string; masterKey: string; witnesses: string }

/** Server with the log. Its data stays after a kill. */
function open({ witnesses, ...given }: Given): Promise<Pinfold> {
  const { transparencyLogWitnesses } = readConfig({
    PINFOLD_ALLOW_INSECURE_UPSTREAMS: 'on',
    ...(witnesses && { PINFOLD_TRANSPARENCY_LOG_WITNESSES: witnesses }),
  })
  const allowed = { allowPrivateAddresses: true, allowInsecureUpstreams: true } as const
  return startPinfold({
    ...given,
    ...allowed,
    url: `http://${origin}`,
    transparencyLogWitnesses,
    logLevel: 'error',
    jobs: [],
  })
}

const { signal } = new AbortController()
const newWitnessing = () => createWitnessing(() => performance.now())
const txOf = ({ app: { db } }: Pinfold): Db['tx'] => db.tx.bind(db)

// Runs the work of the background jobs. Uses no leases, which would stay after a kill.
async function sequence(pinfold: Pinfold): Promise<void> {
  const [{ app }, tx] = [pinfold, txOf(pinfold)]
  await tx((one) => sequenceSome(one, app, origin), { isolation: 'rowLocks', durability: 'later' })
  const answeredTo = answersTo(app)
  await signLogs(app, withoutLease(app), { answeredTo })
  if (answeredTo && (await askBeforeSigning(app, tx, signal)) > 0)
    await signLogs(app, withoutLease(app), { answeredTo })
}

/**
 * Requests signatures of the witnesses, like another, slow node: the checkpoint may no longer be the latest. Returns the number
 * of witnessed checkpoints.
 */
function witnessHeads(pinfold: Pinfold, slowness = 0): Promise<number> {
  const { app } = pinfold
  const post: typeof app.toWitnesses.post = async (...request) => {
    if (Math.random() < slowness) await sleep(Math.random() * 100)
    return app.toWitnesses.post(...request)
  }
  const node = { ...app, witnessing: newWitnessing(), toWitnesses: { ...app.toWitnesses, post } }
  return collectCosignatures(node, txOf(pinfold), signal)
}

async function placesIn({ seed, operator }: Pinfold): Promise<{ org: string; repo: string }> {
  const [group] = (await operator.get('/iam/v2/groups?name=acme')).body.groups ?? []
  const org = (group ?? (await seed.group('', { name: 'acme' }))).uid as string
  const [found] = (await operator.get(`/registry/v2/repos?uidp.children_of=${org}`)).body.repos ?? []
  return { org, repo: (found ?? (await seed.repo(org, { name: 'app' }))).uid as string }
}

async function serveUntilKilled(given: Given): Promise<never> {
  const pinfold = await open(given)
  const { repo } = await placesIn(pinfold)
  const grow = async (): Promise<never> => {
    for (let i = 0; ; i++) {
      // Simulates another process that begins to sign: it first asks the witness for the latest checkpoint.
      if (Math.random() < 0.1) pinfold.app.witnessing = newWitnessing()
      await Promise.all([plantTag(pinfold, repo, `t${i % 7}`, `${process.pid} ${i}`), sequence(pinfold)])
    }
  }
  const witness = async (): Promise<never> => {
    for (;;) {
      say(await witnessHeads(pinfold, 0.3))
      // If the log were suspended, no more checkpoints would come.
      assert.deepEqual(await suspendedOrganizations(pinfold.app.db), [], 'no log is suspended')
      await sleep(Math.random() * 20)
    }
  }
  return (await Promise.all([grow(), witness()]))[0]
}
const say = (cosigned: number): void => void (cosigned > 0 && process.stdout.write('cosigned\n'))

if (values.child !== undefined) await serveUntilKilled(JSON.parse(values.child) as Given)

await using storage = await createStorage()
const { data, database } = storage
const base = { data, database, masterKey: storage.env.PINFOLD_MASTER_KEY ?? '' }
const settled = async <T>(
  given: Given,
  work: (pinfold: Pinfold, org: string, repo: string) => Promise<T>,
): Promise<T> => {
  await using pinfold = await open(given)
  const { org, repo } = await placesIn(pinfold)
  return await work(pinfold, org, repo)
}
const key = await settled({ ...base, witnesses: '' }, async (pinfold, org, repo) => {
  await plantTag(pinfold, repo, 't0', 'first')
  await sequence(pinfold)
  return parsePolicy((await pinfold.operator.get(`/ledger/${org}/policy`)).text).logs[0] as NoteKey
})
await using witness = await startPinfold({ witnessLogs: [key] })
const own = parseVkey((await witness.anonymous.get('/ledger/witness/key')).text.trim())!
await using litewitness =
  values.litewitness === undefined ? undefined : await startLitewitness(values.litewitness, [key])
const settings = [`${vkeyOf(own)} ${witness.url}/ledger/witness`, ...(litewitness ? [litewitness.setting] : [])]
const given: Given = { ...base, witnesses: settings.join(',') }

const [kills, checkpoints] = [Number(values.kills), Number(values.checkpoints)]
let [cosigned, killed] = [0, 0]
for (; killed < kills || cosigned < checkpoints; killed++) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--child', JSON.stringify(given)], {
    env: cleanEnv(),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const wanted = Math.max(1, Math.ceil((2 * Math.random() * checkpoints) / kills))
  let seen = 0
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString().split('\n').length - 1
      if (seen >= wanted) setTimeout(() => child.kill('SIGKILL'), Math.random() * 40)
    })
    child.once('error', reject)
    child.once('close', (_code, signal) => (signal ? resolve() : reject(new Error('the server ended by itself'))))
  })
  cosigned += seen
  await storage.settled()
}

await settled(given, async (pinfold, org, repo) => {
  await plantTag(pinfold, repo, 't0', 'last')
  await sequence(pinfold)
  await witnessHeads(pinfold)
  const { text } = await pinfold.operator.get(`/ledger/${org}/policy`)
  const policy = parsePolicy(text)
  assert.equal(policy.logs.length, 1, 'no log was ended')
  assert.equal((await pinfold.operator.post('/control/v1/ledgerLogs:resume')).body.logs ?? 0, 0)
  const claim = { host: origin, path: 'acme/app', tag: 't0', digest: digestOf('last'), at: new Date().toISOString() }
  const proof = (await pinfold.operator.get(`/ledger/${org}/repos/${repo}/tags/t0/proof`)).text
  const { size } = provedBy(proof, policy, claim)
  if (litewitness) assert.equal(litewitness.heads()[0]!.size, size, 'it has signed the last head, too')
  console.log(`${killed} kills, ${cosigned} heads witnessed, ${size} entries: no head contradicts another`)
})
assert.ok(cosigned > 0, 'otherwise nothing was tried')

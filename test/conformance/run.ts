// The official conformance suite of OCI distribution against the real server; its reports are kept in build/conformance.
// Needs `conformance.test` on the PATH (`go.mod` beside this file pins it). With a bucket too where versitygw is, and on
// PostgreSQL when PINFOLD_TEST_DATABASE names one.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { noBucket, startBucket } from '../support/bucket.ts'
import { clientOf } from '../support/pinfold.ts'
import { cleanEnv, createStorage, project, startProcess, tokenOf } from '../support/process.ts'

const results = join(project, 'build/conformance')

/** All that is optional is on. A blob that a manifest needs cannot be deleted, so manifests go first. */
const everything = {
  OCI_TEST_PULL: '1',
  OCI_TEST_PUSH: '1',
  OCI_TEST_CONTENT_DISCOVERY: '1',
  OCI_TEST_CONTENT_MANAGEMENT: '1',
  OCI_DELETE_MANIFEST_BEFORE_BLOBS: '1',
  OCI_HIDE_SKIPPED_WORKFLOWS: '0',
  OCI_AUTOMATIC_CROSSMOUNT: '1',
}

let passed = 0
let failed = 0

async function runOn(engine: string, more: Record<string, string> = {}): Promise<void> {
  await using storage = await createStorage()
  await using server = await startProcess(storage, {
    env: { PINFOLD_LOG_LEVEL: 'error', PINFOLD_SPARSE_MANIFESTS: 'all', ...more },
  })
  const made = await clientOf(server.url, await tokenOf(storage)).post('/iam/v2/groups/', { name: 'conformance' })
  if (made.status !== 200) throw new Error(made.text)
  const folder = join(results, engine)
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const env = {
    ...cleanEnv(),
    ...everything,
    OCI_ROOT_URL: server.url,
    OCI_NAMESPACE: 'conformance/repo1',
    OCI_CROSSMOUNT_NAMESPACE: 'conformance/repo2',
    OCI_USERNAME: '_token',
    OCI_PASSWORD: await tokenOf(storage, ['--audience', 'registry']),
    OCI_REPORT_DIR: folder,
  }
  const done = spawnSync('conformance.test', [], { cwd: folder, env, encoding: 'utf8', maxBuffer: 64 << 20 })
  if (done.error) throw done.error
  const report = readFileSync(join(folder, 'junit.xml'), 'utf8')
  const cases = [...report.matchAll(/<testcase\b[^>]*\bstatus="(\w+)"/g)].map(([, status]) => status)
  const count = (status: string) => cases.filter((one) => one === status).length
  passed += count('passed')
  failed += cases.length - count('passed') - count('skipped')
  if (cases.length === 0 || done.status !== 0) {
    console.log(done.stdout.slice(-20_000) + done.stderr.slice(-5000))
    if (cases.length === 0) failed++
  }
  console.log(`${engine}: ${count('passed')} passed, ${count('skipped')} skipped, of ${cases.length}`)
}

const database = process.env.PINFOLD_TEST_DATABASE
process.env.PINFOLD_TEST_DATABASE = ''
await runOn('sqlite')
if (noBucket) console.log(`bucket: ${noBucket}`)
else {
  await using bucket = await startBucket()
  await runOn('bucket', { PINFOLD_BLOBS: bucket.url(), ...bucket.aws })
}
if (database) {
  process.env.PINFOLD_TEST_DATABASE = database
  await runOn('postgres')
}
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed > 0 || passed === 0 ? 1 : 0

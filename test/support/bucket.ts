// Bucket for tests, served by versitygw. It keeps objects as files and, unlike other test servers, verifies signatures.
// https://github.com/versity/versitygw, installed by `go install`, on the PATH or in ~/.cache/pinfold/bin.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './ports.ts'

const folders = [...(process.env.PATH ?? '').split(delimiter), join(homedir(), '.cache', 'pinfold', 'bin')]
const program = folders.map((folder) => join(folder, 'versitygw')).find((file) => existsSync(file))

/** Reason to skip tests with a bucket. `false` if they can run. */
export const noBucket: string | false = program === undefined && 'versitygw is not there'

const bucketName = 'pinfold'

export type TestBucket = Awaited<ReturnType<typeof startBucket>>

/** Starts a server with an empty bucket. `stop` kills the server. `start` starts it again with the same content. */
export async function startBucket() {
  const folder = mkdtempSync(join(tmpdir(), 'pinfold-bucket-'))
  for (const name of ['objects', 'sidecar', join('objects', bucketName)]) mkdirSync(join(folder, name))
  const port = await freePort()
  const origin = `http://127.0.0.1:${port}`
  const aws = { AWS_ACCESS_KEY_ID: 'test', AWS_SECRET_ACCESS_KEY: randomBytes(12).toString('hex') }
  let child: ChildProcess | undefined

  const start = async (): Promise<void> => {
    const root = ['--access', aws.AWS_ACCESS_KEY_ID, '--secret', aws.AWS_SECRET_ACCESS_KEY, '--keep-alive', '--quiet']
    const backend = ['posix', '--sidecar', join(folder, 'sidecar'), join(folder, 'objects')]
    child = spawn(program!, [...root, '--port', `127.0.0.1:${port}`, ...backend], { stdio: 'ignore' })
    // The server must not keep the process alive when a test fails.
    child.unref()
    for (let tries = 0; ; tries++) {
      if (
        await fetch(origin).then(
          () => true,
          () => false,
        )
      )
        return
      if (tries > 3000 || child.exitCode !== null) throw new Error('versitygw does not start')
      await sleep(20)
    }
  }
  const stop = async (): Promise<void> => {
    if (!child || child.exitCode !== null) return
    const ended = new Promise((resolve) => child!.once('exit', resolve))
    // This process must not exit before its child process has.
    child.ref()
    child.kill('SIGKILL')
    await ended
  }
  const atExit = () => {
    child?.kill('SIGKILL')
    rmSync(folder, { recursive: true, force: true })
  }
  process.once('exit', atExit)
  await start()
  return {
    origin,
    aws,
    start,
    stop,
    /** URL for `--blobs`. Each call has a new prefix. With `endpoint`, requests go through this proxy. */
    url(endpoint = origin, more = ''): string {
      return `s3://${bucketName}/${randomBytes(6).toString('hex')}?endpoint=${endpoint}${more}`
    },
    /** File on disk of an object in the store at `url`. */
    fileOf: (url: string, key: string) => join(folder, 'objects', bucketName, new URL(url).pathname, key),
    async [Symbol.asyncDispose]() {
      await stop()
      process.off('exit', atExit)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

let shared: Promise<TestBucket> | undefined

/** Settings of a server with its blobs in a bucket. All servers of a test file use the same bucket server. */
export async function bucketSettings(): Promise<{ blobs: string; aws: Record<string, string> }> {
  shared ??= startBucket()
  const bucket = await shared
  return { blobs: bucket.url(), aws: bucket.aws }
}

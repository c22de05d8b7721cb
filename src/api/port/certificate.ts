// Certificate and key of the server, read from two files. The files can be replaced while the server runs.
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { open } from 'node:fs/promises'
import tls, { type SecureContextOptions } from 'node:tls'
import type { Logger } from '#lib/log.ts'

export type CertificateFiles = { cert: string; key: string }

export type Certificate = {
  readonly options: SecureContextOptions
  /**
   * Reads the files again. If the pair has changed and is valid, passes it to `use`. Otherwise logs the problem, if any, and
   * keeps the old pair.
   */
  reload(): Promise<void>
  close(): void
}

/** Maximum size of a file. Long chains have about ten certificates of 2 KiB. */
const mostBytes = 256 * 1024
/**
 * Milliseconds between two reads. A file watcher would not notice changes: the files of a mounted secret are replaced by changing
 * a link.
 */
const lookMs = 10_000

/** Reads the pair, and then regularly reads it again. Throws with the name of the setting if the pair cannot be used. */
export async function openCertificate(
  files: CertificateFiles,
  use: (options: SecureContextOptions) => void,
  log: Logger,
): Promise<Certificate> {
  let last = await readPair(files)
  const options = check(last)
  report(last, log)
  let closed = false
  let failed = ''
  const warn = (error: unknown) => {
    const { message } = error as Error
    if (message !== failed) log.error('new certificate cannot be used; the old one stays in use', { reason: message })
    failed = message
  }
  const reload = async () => {
    try {
      const pair = await readPair(files)
      if (closed || (pair.cert === last.cert && pair.key === last.key)) return
      last = pair
      failed = ''
      use(check(pair))
      report(pair, log)
    } catch (error) {
      warn(error)
    }
  }
  let running = Promise.resolve()
  const next = () => {
    running = running.then(reload)
    return running
  }
  const timer = setInterval(() => void next(), lookMs)
  timer.unref()
  return {
    options,
    reload: next,
    close() {
      closed = true
      clearInterval(timer)
    },
  }
}

type Pair = { cert: string; key: string }

async function readPair({ cert, key }: CertificateFiles): Promise<Pair> {
  return { cert: await readText(cert, 'PINFOLD_TLS_CERT'), key: await readText(key, 'PINFOLD_TLS_KEY') }
}

async function readText(path: string, setting: string): Promise<string> {
  try {
    await using file = await open(path)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(mostBytes + 1))
    if (bytesRead <= mostBytes) return buffer.toString('utf8', 0, bytesRead)
  } catch (error) {
    throw new Error(`${setting}: cannot read ${path}: ${(error as Error).message}`, { cause: error })
  }
  throw new Error(`${setting}: ${path} is larger than ${mostBytes} bytes`)
}

/** Throws errors of our own, since those of OpenSSL name neither the file nor the solution. */
function check({ cert, key }: Pair): SecureContextOptions {
  const leaf = orThrow(
    'PINFOLD_TLS_CERT: the file must have a certificate in PEM format',
    () => new X509Certificate(cert),
  )
  const own = orThrow('PINFOLD_TLS_KEY: the file must have an unencrypted private key in PEM format', () =>
    createPrivateKey(key),
  )
  if (!leaf.checkPrivateKey(own)) {
    throw new Error('PINFOLD_TLS_KEY: the key does not belong to the first certificate in PINFOLD_TLS_CERT')
  }
  const options: SecureContextOptions = { cert, key, minVersion: 'TLSv1.2' }
  orThrow('PINFOLD_TLS_CERT: TLS cannot use the certificate', () => tls.createSecureContext(options))
  return options
}

function orThrow<T>(message: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    throw new Error(message, { cause })
  }
}

function report({ cert }: Pair, log: Logger): void {
  const { subjectAltName, validToDate } = new X509Certificate(cert)
  const fields = { names: subjectAltName, until: validToDate.toISOString() }
  if (validToDate.getTime() < Date.now()) log.warn('certificate has expired; clients refuse it', fields)
  else log.info('certificate in use', fields)
}

// Checks of settings that depend on each other, and of variables that are not settings.

import { isBucket, parseBucket } from '#blobs/s3/bucket.ts'
import { nearest } from '#lib/naming/nearest.ts'
import { isAtOrBelow } from '#lib/net/hosts.ts'
import type { Setting } from './basics.ts'

type Read = {
  database: string
  masterKey: string
  masterKeyNew: string
  termsMethods: readonly string[]
  termsDocuments: readonly unknown[]
  tlsCert: string
  tlsKey: string
  url: string
  hosts: readonly string[]
  blobs: string
  blobRedirects: readonly string[]
  allowInsecureUpstreams: boolean
  transparencyLogWitnesses: readonly { url: string }[]
  compatVendor: string
  compatVendorDomain: string
}

/** Problems with settings that are valid alone, but contradict each other or need another setting. */
export function conflicts(read: Read): string[] {
  const problems: string[] = []
  if (read.database !== '' && read.masterKey === '') {
    problems.push(
      'PINFOLD_MASTER_KEY is missing: a PostgreSQL database needs it; set it to 32 random bytes, such as the output of openssl rand -base64 32',
    )
  }
  if (read.masterKeyNew !== '' && read.masterKey === '') {
    problems.push(
      'PINFOLD_MASTER_KEY_NEW needs PINFOLD_MASTER_KEY; if the master key is in a file of the data folder, unset PINFOLD_MASTER_KEY_NEW',
    )
  }
  if (read.termsMethods.length > 0 && read.termsDocuments.length === 0) {
    problems.push('PINFOLD_TERMS_METHODS needs PINFOLD_TERMS_DOCUMENTS, the list of terms to accept')
  }
  if (read.tlsCert !== '' && read.tlsKey === '') {
    problems.push('PINFOLD_TLS_CERT needs PINFOLD_TLS_KEY, the file with the private key of the certificate')
  }
  if (read.tlsKey !== '' && read.tlsCert === '') {
    problems.push('PINFOLD_TLS_KEY needs PINFOLD_TLS_CERT, the file with the certificate for this key')
  }
  problems.push(...redirectProblems(read))
  const plain = read.allowInsecureUpstreams
    ? undefined
    : read.transparencyLogWitnesses.find(({ url }) => /^http:/.test(url))
  if (plain) {
    problems.push(
      `PINFOLD_TRANSPARENCY_LOG_WITNESSES has ${plain.url}: use https://, or set PINFOLD_ALLOW_INSECURE_UPSTREAMS=on to allow http://`,
    )
  }
  if (read.tlsCert !== '' && read.url.startsWith('http:')) {
    problems.push('PINFOLD_URL must begin with https:// because PINFOLD_TLS_CERT is set')
  }
  if (read.compatVendorDomain !== '' && read.compatVendor === '') {
    problems.push('PINFOLD_COMPAT_VENDOR_DOMAIN needs PINFOLD_COMPAT_VENDOR, the name of the other product')
  }
  return problems
}

/**
 * Problems with redirects. The bucket must not be on a subdomain of this server: clients would send it their tokens, and buckets
 * refuse such requests.
 */
function redirectProblems({ blobs, blobRedirects, url, hosts: names }: Read): string[] {
  if (blobRedirects.join() === 'off') return []
  if (!isBucket(blobs))
    return ['PINFOLD_BLOB_REDIRECTS needs a bucket in PINFOLD_BLOBS; for blobs in a folder, unset it']
  const host = new URL(parseBucket(blobs).publicOrigin).hostname
  const ours = [url, ...names].filter((one) => one !== '').map((one) => hostnameOf(one))
  return ours
    .filter((one) => isAtOrBelow(host, one))
    .map(
      (one) =>
        `PINFOLD_BLOB_REDIRECTS needs a bucket at a host outside of ${one}: at ${host}, clients would send it their tokens`,
    )
}

function hostnameOf(text: string): string {
  return new URL(text.includes('://') ? text : `http://${text}`).hostname
}

/** Setting that was given by its former name. */
export type FormerName = { former: string; name: string }

/**
 * Name of the variable that sets a setting: the current name, or the former one if only that is set. Has a problem if both are
 * set and differ.
 */
export function variableOf(
  env: Record<string, string | undefined>,
  { env: name, formerly: former }: Pick<Setting<unknown>, 'env' | 'formerly'>,
): { variable: string; former?: FormerName; problem?: string } {
  if (former === undefined || !env[former]) return { variable: name }
  if (!env[name]) return { variable: former, former: { former, name } }
  if (env[name] === env[former]) return { variable: name, former: { former, name } }
  return { variable: name, problem: `${name} and its former name ${former} have different values; unset ${former}` }
}

/** Variables that commands print with `-o env`. A shell that evaluates this output passes them to every later command. */
const printed = /^PINFOLD_(?:\w+_(?:ID|NAME)|OCI_TOKEN)$/

/** Problems with variables that have the prefix of settings but are unknown. Each names the closest setting. */
export function unknownSettings(
  variables: readonly string[],
  known: readonly string[],
  former: readonly string[],
): string[] {
  const unknown = variables.filter((name) => {
    return (
      name.startsWith('PINFOLD_') &&
      !/^PINFOLD_TEST_/.test(name) &&
      ![...known, ...former].includes(name) &&
      !printed.test(name)
    )
  })
  return unknown.map((name) => {
    const meant = nearest(name, known)
    const next = meant === undefined ? 'run pinfold config to list all settings' : `did you mean ${meant}?`
    return `${name} is not a setting; ${next}`
  })
}

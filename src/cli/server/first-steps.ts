// What a first start prints.
import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Config } from '#config.ts'

const program = fileURLToPath(new URL('../../../bin/pinfold', import.meta.url))

/** The command that lets a browser in as the operator. */
export function consoleCommand({ database, data }: Config): string {
  const pinfold = quote(relative(process.cwd(), program))
  return database ? `${pinfold} console` : `${pinfold} console --data ${quote(data)}`
}

/** Lines to copy and paste after the first start; they need nothing but a shell, curl and sed. */
export function firstSteps(url: string, config: Config, demo: boolean): string {
  const pinfold = quote(relative(process.cwd(), program))
  // A password or a key must not end up on a screen, so those two are named instead.
  const secrets = [config.database && 'PINFOLD_DATABASE', config.masterKey && 'PINFOLD_MASTER_KEY'].filter(Boolean)
  const same = secrets.length > 0 ? `, with ${secrets.join(' and ')} set as they are here` : ''
  const token = config.database ? `${pinfold} token` : `${pinfold} token --data ${quote(config.data)}`
  // A certificate of our own may be one that nobody else has signed.
  const trust = config.tlsCert === '' ? '' : ` --cacert ${quote(config.tlsCert)}`
  const curl = `curl -s${trust} -H "Authorization: Bearer $TOKEN"`
  const steps = demo
    ? [
        `${curl} "${url}/iam/v2/groups?order_by=name"`,
        `${curl} "${url}/registry/v2/repos?name=python"`,
        `${curl} "${url}/registry/v2/repos?order_by=name&page_size=5"`,
      ]
    : [
        `ORG=$(${curl} ${url}/iam/v2/groups/ -d '{"name":"first-steps"}' | sed -E 's/^\\{"uid":"([^"]*)".*/\\1/')`,
        `${curl} ${url}/registry/v2/repos/$ORG -d '{"name":"web","description":"The shop"}'`,
        `${curl} "${url}/registry/v2/repos?uidp.descendants_of=$ORG"`,
      ]
  const lines = [`export TOKEN=$(${token})`, ...steps]
  return `
First steps, in another terminal in this folder${same}:

${lines.map((line) => `  ${line}\n`).join('')}`
}

function quote(text: string): string {
  return /^[A-Za-z0-9_./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`
}

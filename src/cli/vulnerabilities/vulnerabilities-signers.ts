// Who is believed what they say of vulnerabilities.
import { readFile } from 'node:fs/promises'
import { commonOptions, momentOf, show } from '../registry/image-options.ts'
import { endedOption, givenUid, listMade, placeOptions, printMade, requiredPlaceOf } from '../registry/place-options.ts'
import { apiReader, callerOptions } from '../shape/api-pages.ts'
import { CliError, type Command, exitCodes, outputOption } from '../shape/command.ts'

type Signer = { uid: string; name: string; fingerprint: string; state: string; expireTime: string; actor: string }

const path = '/registry/v2/vexSigners'
const listing = 'pinfold vulnerabilities vex signers'

export const signers: Command = {
  options: [...placeOptions, endedOption, ...commonOptions],
  async run(terminal, options) {
    const { items, more, madeBy } = await listMade<Signer>(terminal, options, { path, member: 'vexSigners' })
    const rows = items.map((one) => [
      ...[one.uid, one.name, one.fingerprint.slice(0, 16), one.state.toLowerCase()],
      ...[one.expireTime, madeBy(one)],
    ])
    return show(terminal, options, { items }, ['UID', 'NAME', 'KEY', 'STATE', 'UNTIL', 'BY'], rows, more)
  },
}

export const trust: Command = {
  details: `What a statement that is signed with it says to be not_affected or fixed in an image does not count there, also where it was
pushed before, to a server that knows of signers. It takes the capability vuln.create. Past reports stay as they were.`,
  arguments: [{ name: '<name>', summary: 'Who that is, as it is shown with what is hidden' }],
  options: [
    ...placeOptions,
    { flags: '--key <file>', summary: 'The public key in PEM, such as cosign.pub', required: true },
    { flags: '--until <time>', summary: 'A day such as 2026-12-31, or a time; at most 366 days ahead', required: true },
    { flags: '--reason <text>', summary: 'Why' },
    outputOption,
    ...callerOptions,
  ],
  async run(terminal, options) {
    const expireTime = momentOf(String(options.until), '--until')
    const publicKey = await keyIn(String(options.key))
    const api = await apiReader(terminal, options)
    const place = await requiredPlaceOf(api, options)
    const { name, reason = '' } = options
    const made = (await api.call('POST', `${path}/${place}`, { name, reason, expireTime, publicKey })) as Signer
    return printMade(terminal, options, made, `${made.name} is trusted until ${made.expireTime}: ${made.uid}`)
  },
}

/** More characters than the API takes. */
const longest = 16_384

async function keyIn(file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: Error) => {
    throw new CliError(exitCodes.usage, `${file} cannot be read: ${error.message}`)
  })
  // It is not to leave this machine.
  if (text.includes('PRIVATE KEY')) throw new CliError(exitCodes.usage, `${file} is a private key; give the public one`)
  // Nor is what somebody has named by mistake.
  if (!/-----BEGIN (?:RSA )?PUBLIC KEY-----/.test(text) || text.length > longest) {
    throw new CliError(exitCodes.usage, `${file} is no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----`)
  }
  return text
}

export const distrust: Command = {
  arguments: [{ name: '<uid>', summary: 'Of the signer, as signers shows it' }],
  options: [{ flags: '--reason <text>', summary: 'Why' }, outputOption, ...callerOptions],
  async run(terminal, options) {
    const api = await apiReader(terminal, options)
    const { reason = '' } = options
    const made = (await api.call('POST', `${path}/${givenUid(options, listing)}:revoke`, { reason })) as Signer
    // One key may be trusted more than once, and then it hides what it did.
    const { items } = await api.list<Signer>(path, 'vexSigners', {}).catch(() => ({ items: [] }))
    const others = items.filter(({ fingerprint }) => fingerprint === made.fingerprint).map(({ uid }) => uid)
    const also = others.length === 0 ? '' : `; its key still is as ${others.join(', ')}`
    return printMade(terminal, options, made, `${made.name} is trusted no longer${also}`)
  },
}

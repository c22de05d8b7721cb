// User name and secret of a push token. The secret has a prefix that secret scanners recognize, 178 random bits, and a checksum.
// With the checksum, made-up secrets are refused without a database query.
import { randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const prefix = 'pinfold_pt_'
const randomLength = 30
const checkLength = 6
const pattern = new RegExp(`^${prefix}[0-9A-Za-z]{${randomLength + checkLength}}$`)

/** Creates a secret. */
export function newPushSecret(): string {
  const random = Array.from({ length: randomLength }, () => letters[randomInt(letters.length)]).join('')
  return `${prefix}${random}${checkOf(prefix + random)}`
}

/** True if a text has the form of a push token's secret, with a correct checksum. */
export function isPushSecret(text: string): boolean {
  if (text.length !== prefix.length + randomLength + checkLength || !pattern.test(text)) return false
  return text.slice(-checkLength) === checkOf(text.slice(0, -checkLength))
}

/** Checksum of a secret: its CRC-32 in base 62. */
function checkOf(text: string): string {
  let check = ''
  for (let left = crc32(text), i = 0; i < checkLength; i++, left = Math.floor(left / 62))
    check = letters[left % 62] + check
  return check
}

/**
 * Characters of user names: no vowels, and no characters that look alike. Attackers may guess a user name, since they would need
 * its secret too.
 */
const userLetters = '23456789bcdfghjkmnpqrstvwxz'
const userPattern = /^pt-[2-9b-z]{8}$/

/** Creates a user name. The caller checks that it is not in use. */
export function newUserName(): string {
  return `pt-${Array.from({ length: 8 }, () => userLetters[randomInt(userLetters.length)]).join('')}`
}

/** True if a text has the form of a push token's user name. */
export function isPushTokenUser(text: string): boolean {
  return userPattern.test(text)
}

// The two words of a push token. The secret has a prefix by which scanners of source code know it, 178 random bits, and a
// checksum, so that what only looks like one is told without asking anybody.
import { randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const letters = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const prefix = 'pinfold_pt_'
const randomLength = 30
const checkLength = 6
const pattern = new RegExp(`^${prefix}[0-9A-Za-z]{${randomLength + checkLength}}$`)

/** A new one. */
export function newPushSecret(): string {
  const random = Array.from({ length: randomLength }, () => letters[randomInt(letters.length)]).join('')
  return `${prefix}${random}${checkOf(prefix + random)}`
}

/** Whether a text can be the secret of a push token at all. */
export function isPushSecret(text: string): boolean {
  if (text.length !== prefix.length + randomLength + checkLength || !pattern.test(text)) return false
  return text.slice(-checkLength) === checkOf(text.slice(0, -checkLength))
}

/** CRC-32 in base 62. */
function checkOf(text: string): string {
  let check = ''
  for (let left = crc32(text), i = 0; i < checkLength; i++, left = Math.floor(left / 62))
    check = letters[left % 62] + check
  return check
}

/** Neither vowels nor what is easily taken for something else; nobody guesses by it, since there is a secret too. */
const userLetters = '23456789bcdfghjkmnpqrstvwxz'
const userPattern = /^pt-[2-9b-z]{8}$/

/** A new one; whoever makes it looks whether it is taken. */
export function newUserName(): string {
  return `pt-${Array.from({ length: 8 }, () => userLetters[randomInt(userLetters.length)]).join('')}`
}

/** Whether a user name is that of a push token. */
export function isPushTokenUser(text: string): boolean {
  return userPattern.test(text)
}

import { createPublicKey } from 'node:crypto'
import { type FieldViolation, failedPrecondition, maxViolations, refuseIfAny } from '#lib/errors.ts'
import type { Vendor } from '#lib/naming/vendor.ts'

/** Members of a custom overlay that have validation rules. */
export type Overlay = {
  environment: Record<string, string>
  annotations: Record<string, string>
  contents?: { runtimeKeyring: { name: string; content: string }[] } | undefined
}

/**
 * Refuses every custom overlay, since no repository of this server builds images. The error names invalid members, including
 * reserved keys.
 */
export function refuseOverlay(overlay: Overlay, vendor: Vendor | undefined): never {
  const tokens = ['pinfold', ...(vendor ? [vendor.token] : [])]
  const problems: FieldViolation[] = []
  const say = (path: string, description: string) => problems.push({ field: `custom_overlay.${path}`, description })

  for (const key of Object.keys(overlay.environment)) {
    const reserved = tokens.map((token) => `${token.toUpperCase()}_`).find((prefix) => key.startsWith(prefix))
    if (reserved) say('environment', `${key} starts with ${reserved}, which is reserved`)
  }
  for (const key of Object.keys(overlay.annotations)) {
    const prefixes = [...tokens.map((token) => `dev.${token}.`), 'org.opencontainers.']
    const reserved = prefixes.find((prefix) => key.startsWith(prefix))
    if (reserved) say('annotations', `${key} starts with ${reserved}, which is reserved`)
  }
  for (const [i, entry] of (overlay.contents?.runtimeKeyring ?? []).entries()) {
    if (problems.length >= maxViolations) break // parsing a key takes long
    const at = `contents.runtime_keyring[${i}]`
    if (entry.name === '' || entry.name.startsWith('.') || entry.name.includes('/')) {
      say(`${at}.name`, 'must be a file name that does not start with a dot')
    }
    if (!isRsaPem(entry.content)) say(`${at}.content`, 'must be an RSA public key in PEM form')
  }
  refuseIfAny(problems)
  throw failedPrecondition({
    type: 'CUSTOM_ASSEMBLY_DISABLED',
    subject: 'custom_overlay',
    description: 'custom assembly is not enabled for this repo',
  })
}

function isRsaPem(text: string): boolean {
  try {
    return createPublicKey(text).asymmetricKeyType === 'rsa'
  } catch {
    return false
  }
}

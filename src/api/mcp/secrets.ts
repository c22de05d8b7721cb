import type { DescField, DescMessage, Message } from '@bufbuild/protobuf'

/** Removes the fields that the contract marks as secret. Agents store what they read, and show it to others. */
export function withoutSecrets<T extends Message>(desc: DescMessage, message: T): T {
  const hiding = desc.fields.filter((field) => hasSecret(field, [desc]))
  if (hiding.length === 0) return message
  const values: Record<string, unknown> = { ...message }
  for (const field of hiding) {
    if (!field.oneof) values[field.localName] = withoutSecretsOf(field, values[field.localName])
    else {
      const chosen = values[field.oneof.localName] as Chosen
      if (chosen.case !== field.localName) continue
      values[field.oneof.localName] = { case: chosen.case, value: withoutSecretsOf(field, chosen.value) }
    }
  }
  return values as T
}

type Chosen = { case: string | undefined; value?: unknown }

function withoutSecretsOf(field: DescField, value: unknown): unknown {
  if (isSecret(field)) return field.fieldKind === 'list' ? [] : field.fieldKind === 'map' ? {} : ''
  if (value === undefined) return undefined
  const clean = (one: Message) => withoutSecrets(field.message!, one)
  if (field.fieldKind === 'list') return (value as Message[]).map(clean)
  if (field.fieldKind !== 'map') return clean(value as Message)
  return Object.fromEntries(Object.entries(value as Record<string, Message>).map(([key, one]) => [key, clean(one)]))
}

/** True if the field is a secret, or is a message that contains a secret at any depth. */
function hasSecret(field: DescField, within: readonly DescMessage[]): boolean {
  if (isSecret(field)) return true
  const { message } = field
  if (!message || within.includes(message)) return false
  return message.fields.some((inner) => hasSecret(inner, [...within, message]))
}

/** True if the contract marks the field as secret. All secrets are strings. */
export function isSecret(field: DescField): boolean {
  return field.proto.options?.debugRedact === true
}

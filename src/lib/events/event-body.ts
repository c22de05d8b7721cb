// Conversion of a service's values to the message of an event; the compiler checks both sides.
import { create, type DescMessage, type DescMethod, type Message, type MessageShape } from '@bufbuild/protobuf'

/** Value of a model, with its kind. */
export type Resource = { readonly kind: string; readonly value: unknown }

/** Wraps a value of type `T` with its kind. Services call it, and messages are registered for it. */
export type Kind<T> = ((value: T) => Resource) & { readonly kind: string }

/** Creates a kind. Kinds that appear in the same event need different names. */
export function kindOf<T>(kind: string): Kind<T> {
  return Object.assign((value: T): Resource => ({ kind, value }), { kind })
}

/** Body of the event of a deletion, which has only the uid. */
export const toDeletionResource = kindOf<{ uid: string }>('deletion')

/** Converts a resource of one kind into the body of an event. */
export type EventBody = {
  /** Method that causes the event, or the message of an event without a method. */
  of: DescMethod | DescMessage
  kind: string
  /** Returns `null` if the event has no body. */
  toMessage(value: never): Message | null
}

/** The event of a method carries its response, or its request when the response is empty. */
type BodyShape<D extends DescMethod | DescMessage> = D extends DescMessage
  ? MessageShape<D>
  : D extends DescMethod
    ? MessageShape<D['output']> extends { $typeName: 'google.protobuf.Empty' }
      ? MessageShape<D['input']>
      : MessageShape<D['output']>
    : never

/** The body that the event of a method, or of a message, has for resources of a kind. */
export function eventBody<D extends DescMethod | DescMessage, T>(
  of: D,
  { kind }: Kind<T>,
  toMessage: (value: T) => BodyShape<D> | null,
): EventBody {
  return { of, kind, toMessage }
}

/** Body for a deletion whose request only names the resource to delete; version 1 calls it `id`. */
export function deletionBody<D extends DescMethod>(
  of: MessageShape<D['input']> extends { uid: string } | { id: string } ? D : never,
): EventBody {
  const [member] = of.input.fields
  const toMessage = ({ uid }: { uid: string }) => create(of.input, { [member!.localName]: uid } as never)
  return { of, kind: toDeletionResource.kind, toMessage }
}

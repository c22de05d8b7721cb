// Conversion of services' values to the messages of events. The compiler checks the types of both.
import { create, type DescMessage, type DescMethod, type Message, type MessageShape } from '@bufbuild/protobuf'

/** Value of a model, with its kind. */
export type Resource = { readonly kind: string; readonly value: unknown }

/** Function that wraps a value of type `T` with its kind. Services call it, and event bodies are registered for it. */
export type Kind<T> = ((value: T) => Resource) & { readonly kind: string }

/** Creates a kind. Kinds that appear in the same event need different names. */
export function kindOf<T>(kind: string): Kind<T> {
  return Object.assign((value: T): Resource => ({ kind, value }), { kind })
}

/** Kind of a deleted resource, of which the event has only the uid. */
export const toDeletionResource = kindOf<{ uid: string }>('deletion')

/** Conversion of resources of one kind to the body of an event. */
export type EventBody = {
  /** Method whose event has this body. For an event without a method, the message of the event. */
  of: DescMethod | DescMessage
  kind: string
  /** Returns `null` if the event has no body. */
  toMessage(value: never): Message | null
}

/** Type of the body: the response of the method, or its request if the response is empty. */
type BodyShape<D extends DescMethod | DescMessage> = D extends DescMessage
  ? MessageShape<D>
  : D extends DescMethod
    ? MessageShape<D['output']> extends { $typeName: 'google.protobuf.Empty' }
      ? MessageShape<D['input']>
      : MessageShape<D['output']>
    : never

/** Body of the event of a method or a message, for resources of one kind. */
export function eventBody<D extends DescMethod | DescMessage, T>(
  of: D,
  { kind }: Kind<T>,
  toMessage: (value: T) => BodyShape<D> | null,
): EventBody {
  return { of, kind, toMessage }
}

/** Body of a deletion event: the request of the method, whose only field is the uid. Version 1 names the field `id`. */
export function deletionBody<D extends DescMethod>(
  of: MessageShape<D['input']> extends { uid: string } | { id: string } ? D : never,
): EventBody {
  const [member] = of.input.fields
  const toMessage = ({ uid }: { uid: string }) => create(of.input, { [member!.localName]: uid } as never)
  return { of, kind: toDeletionResource.kind, toMessage }
}

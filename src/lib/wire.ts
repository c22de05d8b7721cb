/** The answer of a method that returns google.protobuf.Empty. */
export const empty = { $typeName: 'google.protobuf.Empty' } as const

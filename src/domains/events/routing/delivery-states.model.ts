/** State of a delivery, as stored in its row. */
export const deliveryStates = { waiting: 0, delivered: 1, givenUp: 2 } as const
export type DeliveryState = (typeof deliveryStates)[keyof typeof deliveryStates]

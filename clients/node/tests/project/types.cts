import { type Client, connect } from "polynym";

export const client: Client = connect();

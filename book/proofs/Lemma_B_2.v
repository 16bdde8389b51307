(* Lemma B.2: a sensitive attribute with finitely many values, and the formula for two groups.

   Formalized: the sum for HSIC, the statement that HSIC and the expected squared
   MMD are zero exactly if every conditional law equals the marginal law, and
   the exact values for two groups, which the paper does not print.
   Weaker than the paper: Z takes finitely many values, too.
   Hypotheses: p is a joint law; for the zero level k_Z is characteristic, k_S is
   strictly positive definite and every value of S has positive probability, as
   in the paper. The values for two groups need no property of the kernels
   beyond symmetry of k_S, and no positive probabilities. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* begin Lemma B.2, formula *)
Theorem finite_sum (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) :
  joint_law p ->
  hsic k l p = \sum_s \sum_t marginal_s p s * marginal_s p t * l s t
                 * form k (deviation p s) (deviation p t).
(* end Lemma B.2, formula *)
Proof.
move=> p_law; rewrite (hsic_decomposition p_law).
by apply: eq_bigr => s _; apply: eq_bigr => t _; ring.
Qed.

(* begin Lemma B.2, zeros *)
Theorem zero_level (R : realFieldType) (Z S : finType)
    (p : Z -> S -> R) (k : Z -> Z -> R) (l : S -> S -> R) :
  joint_law p -> (forall s, 0 < marginal_s p s) ->
  kernel k -> characteristic k -> kernel l -> strictly_positive l ->
  (hsic k l p = 0 <-> forall s z, conditional p s z = marginal_z p z)
  /\ (expected_mmd2 k p = 0 <-> forall s z, conditional p s z = marginal_z p z).
(* end Lemma B.2, zeros *)
Proof.
move=> p_law p0 kk ck kl sl.
have zero_mmd s : mmd2 k (conditional p s) (marginal_z p) = 0 ->
                  forall z, conditional p s z = marginal_z p z.
  by apply: ck; [apply: conditional_law => //; rewrite gt_eqF | exact: marginal_z_law].
have zero_form (u v : Z -> R) : (forall z, u z = 0) -> form k u v = 0.
  by move=> u0; rewrite /form big1 // => x _; rewrite big1 // => y _; rewrite u0 !mul0r.
split; split=> h.
- have [r [d [v [d0 ek]]]] := kernel_squares kk.
  move=> s; apply: zero_mmd.
  rewrite /mmd2 /quad (eq_kernel_form _ _ ek) form_squares big1 // => j _.
  have [->|dj] := eqVneq (d j) 0; first by rewrite mul0r.
  move: h; rewrite (hsic_squares p_law _ ek) => /eqP; rewrite psumr_eq0; last first.
    by move=> i _; apply: mulr_ge0 => //; exact: (proj2 kl).
  move=> /allP /(_ j (mem_index_enum _)) /=; rewrite mulf_eq0 (negbTE dj) /= => /eqP /sl /(_ s) /eqP.
  by rewrite mulf_eq0 gt_eqF // head_gapC => /eqP ->; rewrite !mul0r mulr0.
- rewrite (hsic_decomposition p_law) big1 // => s _; rewrite big1 // => t _.
  by rewrite zero_form ?mul0r ?mulr0 // => z; rewrite /deviation h subrr.
- move=> s; apply: zero_mmd; move: h => /eqP; rewrite /expected_mmd2 psumr_eq0; last first.
    by move=> t _; apply: mulr_ge0; [exact: ltW | exact: (proj2 kk)].
  by move=> /allP /(_ s (mem_index_enum _)) /=; rewrite mulf_eq0 gt_eqF //= => /eqP.
- rewrite /expected_mmd2 big1 // => s _.
  by rewrite /mmd2 /quad zero_form ?mulr0 // => z; rewrite h subrr.
Qed.

(* begin Lemma B.2, two groups *)
Theorem two_groups (R : realFieldType) (Z : finType)
    (p : Z -> bool -> R) (k : Z -> Z -> R) (l : bool -> bool -> R) :
  joint_law p -> l true false = l false true ->
  let a := marginal_s p true in
  let b := marginal_s p false in
  let gap := mmd2 k (conditional p true) (conditional p false) in
  hsic k l p = a ^+ 2 * b ^+ 2 * (l true true - 2%:R * l true false + l false false) * gap
  /\ expected_mmd2 k p = a * b * gap.
(* end Lemma B.2, two groups *)
Proof.
move=> p_law sl a b gap.
have ab : a + b = 1 by rewrite -(marginal_s_sum p_law) big_bool.
have bE : b = 1 - a by rewrite -ab; ring.
pose u z := conditional p true z - conditional p false z.
have mz z : marginal_z p z = a * conditional p true z + b * conditional p false z.
  by rewrite /marginal_z big_bool !(joint_conditional p_law).
have dt : deviation p true =1 (fun z => b * u z).
  by move=> z; rewrite /deviation mz /u bE; ring.
have df : deviation p false =1 (fun z => - a * u z).
  by move=> z; rewrite /deviation mz /u bE; ring.
have fZ x y : form k (fun z => x * u z) (fun z => y * u z) = x * y * gap.
  rewrite /gap /mmd2 /quad /form mulr_sumr; apply: eq_bigr => z _.
  by rewrite mulr_sumr; apply: eq_bigr => z' _; rewrite /u; ring.
split.
  rewrite (hsic_decomposition p_law) !big_bool /=.
  rewrite (eq_form _ dt dt) (eq_form _ dt df) (eq_form _ df dt) (eq_form _ df df) !fZ -/a -/b sl.
  by ring.
rewrite /expected_mmd2 big_bool /= -/a -/b.
have -> : mmd2 k (conditional p true) (marginal_z p) = b * b * gap.
  by rewrite -fZ; apply: eq_form.
have -> : mmd2 k (conditional p false) (marginal_z p) = - a * - a * gap.
  by rewrite -fZ; apply: eq_form.
by rewrite bE; ring.
Qed.

(* The hypotheses of the zero level hold for a fair coin with the kernel 1[x = y]. *)
Example hypotheses_hold (R : realFieldType) :
  let p := @coin R in
  [/\ joint_law p, forall s, 0 < marginal_s p s, kernel (@equal R bool_finType),
      characteristic (@equal R bool_finType) & strictly_positive (@equal R bool_finType)].
Proof.
split; [exact: coin_law | by move=> s; rewrite coin_marginal invr_gt0 ltr0n | exact: equal_kernel | |];
  last exact: equal_strict.
by apply: strict_characteristic; exact: equal_strict.
Qed.

(* Theorem 5.1: the deterministic lemmas of its proof, and what follows from it for a learned encoder.

   Formalized, for every sample in arbitrary sets:
   - the empirical HSIC is at most nu_Z nu_S, and at most a quarter of it for
     non-negative kernels;
   - changing one row moves it by at most 16 nu_Z nu_S / n, and by at most
     4 nu_Z nu_S / n for non-negative kernels (bounded differences);
   - it is an average of k_ij (l_ij + l_qr - 2 l_iq), and the bracket is at most
     4 nu_S, or 2 nu_S for non-negative kernels;
   - a kernel value moves by at most sqrt(2 nu) times the distance of the features;
   - on the event of Theorem 5.1 the bound holds for every encoder that is chosen
     from the same sample (Corollaries 5.2 and G.3, given the theorem).
   Not formalized: the probabilistic steps (McDiarmid's inequality,
   symmetrization, comparison of Gaussian processes, bias).
   As printed, the theorem is false for kernels with a large bound: the right
   factor of the last term is nu_S sqrt(nu_Z) l_Z. Nothing here depends on it. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
From Proofs Require Import Finite Sample.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Features.
Variables (R : realFieldType) (n d e : nat).
Hypothesis n_gt0 : (0 < n)%N.
Let n1 : (0 : R) < n%:R. Proof. by rewrite ltr0n. Qed.
Let nn : n%:R != 0 :> R. Proof. by rewrite gt_eqF. Qed.

Lemma sum_recentered (a b : 'I_n -> R) :
  \sum_i recenter a i * recenter b i
  = \sum_i a i * b i - n%:R^-1 * (\sum_i a i) * (\sum_i b i).
Proof.
set A := \sum_i a i; set B := \sum_i b i; set P := \sum_i a i * b i.
have -> : \sum_i recenter a i * recenter b i
          = \sum_i (a i * b i - n%:R^-1 * B * a i - n%:R^-1 * A * b i + n%:R^-1 * A * (n%:R^-1 * B)).
  by apply: eq_bigr => i _; rewrite /recenter -/A -/B; ring.
rewrite big_split !sumrB /= -!mulr_sumr sumr_const card_ord -[B *+ n]mulr_natr -/A -/B -/P.
by field.
Qed.

(* The entries of the empirical cross-covariance of explicit features. *)
Definition cross (u : 'I_n -> 'I_d -> R) (v : 'I_n -> 'I_e -> R) (x : 'I_d * 'I_e) : R :=
  n%:R^-1 * \sum_i recenter (fun i => u i x.1) i * recenter (fun i => v i x.2) i.

Lemma crossE u v x :
  cross u v x = n%:R^-1 * (\sum_i u i x.1 * v i x.2)
                - n%:R^-1 * (\sum_i u i x.1) * (n%:R^-1 * \sum_i v i x.2).
Proof.
rewrite /cross sum_recentered mulrBr; congr (_ - _).
by set A := \sum_i _; set B := \sum_i _; ring.
Qed.

Lemma sum_recenter_sq (a : 'I_n -> R) : \sum_i recenter a i ^+ 2 <= \sum_i a i ^+ 2.
Proof.
under eq_bigr do rewrite expr2; rewrite sum_recentered; under [X in _ <= X]eq_bigr do rewrite expr2.
by rewrite ler_subl_addr ler_addl -mulrA mulr_ge0 ?invr_ge0 ?ler0n // -expr2 sqr_ge0.
Qed.

Lemma cross_norm u v nu mu :
  (forall i, \sum_a u i a ^+ 2 <= nu) -> (forall i, \sum_a v i a ^+ 2 <= mu) ->
  \sum_x cross u v x ^+ 2 <= nu * mu.
Proof.
move=> un vn.
have var m (w : 'I_n -> 'I_m -> R) c : (forall i, \sum_a w i a ^+ 2 <= c) ->
    n%:R^-1 * (\sum_a \sum_i recenter (fun i => w i a) i ^+ 2) <= c.
  move=> wc; rewrite ler_pdivr_mull //.
  apply: (@le_trans _ _ (\sum_a \sum_i w i a ^+ 2)).
    by apply: ler_sum => a _; exact: sum_recenter_sq.
  rewrite exchange_big; apply: le_trans (ler_sum _ (fun i _ => wc i)) _.
  by rewrite sumr_const card_ord mulr_natl.
have pos m (w : 'I_n -> 'I_m -> R) : 0 <= n%:R^-1 * (\sum_a \sum_i recenter (fun i => w i a) i ^+ 2).
  by rewrite mulr_ge0 ?invr_ge0 ?ler0n // sumr_ge0 // => a _; rewrite sumr_ge0 // => i _; exact: sqr_ge0.
apply: le_trans (ler_pmul (pos _ u) (pos _ v) (var _ _ _ un) (var _ _ _ vn)).
have -> : n%:R^-1 * (\sum_a \sum_i recenter (fun i => u i a) i ^+ 2)
          * (n%:R^-1 * (\sum_a \sum_i recenter (fun i => v i a) i ^+ 2))
        = \sum_(x : 'I_d * 'I_e) (n%:R ^+ 2)^-1 * ((\sum_i recenter (fun i => u i x.1) i ^+ 2)
                                                * (\sum_i recenter (fun i => v i x.2) i ^+ 2)).
  rewrite -mulr_sumr -(pair_big xpredT xpredT (fun a b => (\sum_i recenter (fun i => u i a) i ^+ 2)
                                     * (\sum_i recenter (fun i => v i b) i ^+ 2))) /=.
  by rewrite -big_distrlr /= mulrACA -invfM -expr2.
apply: ler_sum => x _; rewrite /cross exprMn exprVn; apply: ler_wpmul2l; first by rewrite invr_ge0 sqr_ge0.
exact: dot_sq.
Qed.

(* The two samples agree except in row i0. *)
Variable i0 : 'I_n.
Variables (u u' : 'I_n -> 'I_d -> R) (v v' : 'I_n -> 'I_e -> R).
Hypothesis same_u : forall i, i != i0 -> u i = u' i.
Hypothesis same_v : forall i, i != i0 -> v i = v' i.

(* The mean of the other rows. *)
Definition others m (w : 'I_n -> 'I_m -> R) (a : 'I_m) : R :=
  (n.-1)%:R^-1 * \sum_(i | i != i0) w i a.

Lemma cross_change x :
  cross u v x - cross u' v' x
  = (n.-1)%:R / n%:R ^+ 2
    * ((u i0 x.1 - others u x.1) * (v i0 x.2 - others v x.2)
       - (u' i0 x.1 - others u x.1) * (v' i0 x.2 - others v x.2)).
Proof.
rewrite !crossE /others.
have eu : \sum_(i | i != i0) u' i x.1 = \sum_(i | i != i0) u i x.1.
  by apply: eq_bigr => i ii; rewrite same_u.
have ev : \sum_(i | i != i0) v' i x.2 = \sum_(i | i != i0) v i x.2.
  by apply: eq_bigr => i ii; rewrite same_v.
have euv : \sum_(i | i != i0) u' i x.1 * v' i x.2 = \sum_(i | i != i0) u i x.1 * v i x.2.
  by apply: eq_bigr => i ii; rewrite same_u // same_v.
have split_sum (F : 'I_n -> R) : \sum_i F i = F i0 + \sum_(i | i != i0) F i by rewrite (bigD1 i0).
rewrite (split_sum (fun i => u i x.1 * v i x.2)) (split_sum (fun i => u' i x.1 * v' i x.2)).
rewrite (split_sum (fun i => u i x.1)) (split_sum (fun i => u' i x.1)).
rewrite (split_sum (fun i => v i x.2)) (split_sum (fun i => v' i x.2)) eu ev euv.
have nE : n%:R = (n.-1)%:R + 1 :> R by rewrite -{1}(prednK n_gt0) mulrSr.
have [n0|n0] := eqVneq ((n.-1)%:R : R) 0; last first.
  have nz : (n.-1)%:R + 1 != 0 :> R by rewrite -nE.
  rewrite nE; move: ((n.-1)%:R : R) n0 nz => N n0 nz.
  set A := \sum_(i | _) u i x.1; set B := \sum_(i | _) v i x.2; set P := \sum_(i | _) _ * _.
  by move: A B P => A B P; field; rewrite n0 nz.
have none : forall (F : 'I_n -> R), \sum_(i | i != i0) F i = 0.
  move=> F; rewrite big_pred0 // => i; apply/negbTE; rewrite negbK; apply/eqP/val_inj.
  have : n = 1%N by apply/eqP; rewrite -(prednK n_gt0) eqSS -(pnatr_eq0 R) n0.
  move=> n_1; have /eqP -> : val i == 0%N by rewrite -leqn0 -ltnS -n_1 ltn_ord.
  by apply/esym/eqP; rewrite -leqn0 -ltnS -n_1 ltn_ord.
by rewrite !none nE n0 add0r invr1; ring.
Qed.

(* Squared norms of the changed row against the others, and of the covariances. *)
Lemma change_bound (p q c : R) :
  0 <= p -> 0 <= q -> 0 <= c ->
  \sum_a (u i0 a - others u a) ^+ 2 <= p -> \sum_a (u' i0 a - others u a) ^+ 2 <= p ->
  \sum_b (v i0 b - others v b) ^+ 2 <= q -> \sum_b (v' i0 b - others v b) ^+ 2 <= q ->
  \sum_x cross u v x ^+ 2 <= c -> \sum_x cross u' v' x ^+ 2 <= c ->
  (\sum_x cross u v x ^+ 2 - \sum_x cross u' v' x ^+ 2) ^+ 2 <= 16%:R * (p * q * c) / n%:R ^+ 2.
Proof.
move=> p0 q0 c0 up up' vq vq' uc uc'.
have -> : \sum_x cross u v x ^+ 2 - \sum_x cross u' v' x ^+ 2
          = \sum_x (cross u v x - cross u' v' x) * (cross u v x + cross u' v' x).
  by rewrite -sumrB; apply: eq_bigr => x _; ring.
apply: le_trans (dot_sq _ _) _.
have plus : \sum_x (cross u v x + cross u' v' x) ^+ 2 <= 4%:R * c.
  apply: (@le_trans _ _ (\sum_x (2%:R * cross u v x ^+ 2 + 2%:R * cross u' v' x ^+ 2))).
    apply: ler_sum => x _; rewrite -subr_ge0.
    have -> : forall a b : R, 2%:R * a ^+ 2 + 2%:R * b ^+ 2 - (a + b) ^+ 2 = (a - b) ^+ 2 by move=> a b; ring.
    exact: sqr_ge0.
  rewrite big_split /= -!mulr_sumr; apply: (@le_trans _ _ (2%:R * c + 2%:R * c)).
    by apply: ler_add; apply: ler_wpmul2l; rewrite ?ler0n.
  by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
have tensor (f : 'I_d -> R) (g : 'I_e -> R) :
    \sum_(x : 'I_d * 'I_e) (f x.1 * g x.2) ^+ 2 = (\sum_a f a ^+ 2) * (\sum_b g b ^+ 2).
  rewrite -(pair_big xpredT xpredT (fun a b => (f a * g b) ^+ 2)) /= big_distrlr /=.
  by apply: eq_bigr => a _; apply: eq_bigr => b _; ring.
have minus : \sum_x (cross u v x - cross u' v' x) ^+ 2 <= 4%:R * (p * q) / n%:R ^+ 2.
  under eq_bigr do rewrite cross_change exprMn.
  rewrite -mulr_sumr mulrC; apply: ler_pmul.
  - by apply: sumr_ge0 => x _; exact: sqr_ge0.
  - exact: sqr_ge0.
  - apply: (@le_trans _ _ (\sum_(x : 'I_d * 'I_e)
        (2%:R * ((u i0 x.1 - others u x.1) * (v i0 x.2 - others v x.2)) ^+ 2
         + 2%:R * ((u' i0 x.1 - others u x.1) * (v' i0 x.2 - others v x.2)) ^+ 2))).
      apply: ler_sum => x _; rewrite -subr_ge0.
      have -> : forall a b : R, 2%:R * a ^+ 2 + 2%:R * b ^+ 2 - (a - b) ^+ 2 = (a + b) ^+ 2 by move=> a b; ring.
      exact: sqr_ge0.
    rewrite big_split /= -!mulr_sumr.
    rewrite (tensor (fun a => u i0 a - others u a) (fun b => v i0 b - others v b)).
    rewrite (tensor (fun a => u' i0 a - others u a) (fun b => v' i0 b - others v b)).
    apply: (@le_trans _ _ (2%:R * (p * q) + 2%:R * (p * q))).
      by apply: ler_add; apply: ler_wpmul2l; rewrite ?ler0n //; apply: ler_pmul => //;
         apply: sumr_ge0 => a _; exact: sqr_ge0.
    by rewrite le_eqVlt; apply/orP; left; apply/eqP; ring.
  - have -> : ((n.-1)%:R / n%:R ^+ 2) ^+ 2 = ((n.-1)%:R / n%:R) ^+ 2 * (n%:R ^+ 2)^-1 :> R by field.
    rewrite -[X in _ <= X]mul1r; apply: ler_wpmul2r; first by rewrite invr_ge0 sqr_ge0.
    by rewrite expr_le1 ?divr_ge0 ?ler0n // ler_pdivr_mulr // mul1r ler_nat leq_pred.
apply: (@le_trans _ _ (4%:R * (p * q) / n%:R ^+ 2 * (4%:R * c))).
  by apply: ler_pmul => //; apply: sumr_ge0 => x _; exact: sqr_ge0.
by rewrite le_eqVlt; apply/orP; left; apply/eqP; field.
Qed.

End Features.
